"""From published files to impressions that can be played: read once, sample, encode, keep."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import encoder as encoders
from . import raw
from .datasets import Dataset, Impression
from .errors import BadFile, TooFew
from .files import Source, sources
from .sampling import reservoir
from .synthetic import MARK

SAMPLE_SEED = 0
TICK_ROWS = 10_000

Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be made of the files."""

    raw: bool = False
    encoder: str = "autoencoder"  # a mix, or the path of a saved encoder
    dimension: int = 32
    sample_rows: int = 100_000
    max_rows: int | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    codes: NDArray[np.float32]  # (n, d), NaN where missing
    clicks: NDArray[np.bool_]  # (n,)
    about: dict[str, Any]
    encoder: encoders.Encoder | None = None

    @property
    def digest(self) -> str:
        """Of the numbers themselves: two replays of the same digest meet the same rounds."""
        hashed = hashlib.sha256(self.codes.tobytes())
        hashed.update(self.clicks.tobytes())
        return hashed.hexdigest()[:16]


def prepare(
    dataset: Dataset,
    paths: Sequence[Path],
    wanted: Wanted,
    tick: Tick = lambda rows: None,
) -> Prepared:
    files = dataset.assign(sources(paths, dataset.encoding))
    counted = _Counted(islice(dataset.stream(files), wanted.max_rows), tick)
    if wanted.raw:
        kept = list(islice(counted, wanted.sample_rows))
    else:
        kept = reservoir(counted, wanted.sample_rows, SAMPLE_SEED)
    if not kept:
        raise BadFile(files[dataset.roles[0]].name, 1, "holds no impressions")
    rows = dataset.complete([one.key for one in kept], files)
    clicks = np.array([one.clicked for one in kept])
    about = {
        "dataset": dataset.name,
        "rows_read": counted.rows,
        "rows_kept": len(kept),
        "click_rate": float(clicks.mean()),
        "synthetic": _is_synthetic(files),
    }
    if wanted.raw:
        codes = raw.features(rows, dataset.fields)
        about |= {"features": "raw", "missing": float(np.isnan(codes).mean())}
        return Prepared(codes, clicks, about)
    encoder = _encoder(dataset, rows, wanted)
    about |= {"features": encoder.mix, "columns": len(encoder.weights)}
    return Prepared(encoder.encode(rows), clicks, about, encoder)


def _encoder(dataset: Dataset, rows: Sequence[Any], wanted: Wanted) -> encoders.Encoder:
    if wanted.encoder in encoders.MIXES:
        return encoders.fit(rows, dataset.fields, wanted.dimension, mix=wanted.encoder)
    encoder = encoders.Encoder.load(Path(wanted.encoder))
    if encoder.fields != dataset.fields:
        raise TooFew(f"the encoder {wanted.encoder} was fitted to other fields than {dataset.name}")
    return encoder


def _is_synthetic(files: dict[str, Source]) -> bool:
    log = next(iter(files.values()))
    lines = log.lines()
    next(lines, None)
    return next(lines, "").startswith(MARK)


class _Counted:
    """Passes impressions on and says how many."""

    def __init__(self, impressions: Iterator[Impression], tick: Tick) -> None:
        self.impressions, self.tick = impressions, tick
        self.rows = 0

    def __iter__(self) -> Iterator[Impression]:
        for one in self.impressions:
            self.rows += 1
            if self.rows % TICK_ROWS == 0:
                self.tick(self.rows)
            yield one
        self.tick(self.rows)
