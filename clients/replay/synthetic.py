"""`lacuna sample avazu`: a file of Avazu's schema, made up, with a signal planted in it.

For those who have not downloaded the real one. Every id begins with `synthetic`, and every report
made from it says so.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from clients.errors import BadArgument
from clients.values import whole

from .datasets.avazu import HEADER, MISSING

MARK = "synthetic-"
CLICK_RATE = 0.17  # as in the real file
STRENGTH = 1.3  # of the planted effects, in log odds
TRIALS = 4_000
CHUNK_ROWS = 10_000
DAYS, HOURS = 10, 24

EPILOG = """\
examples:
  lacuna sample avazu --out synthetic.csv.gz
  lacuna replay avazu synthetic.csv.gz --in-process
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EPILOG
    parser.add_argument("dataset", choices=["avazu"], help="whose schema")
    parser.add_argument(
        "--rows", type=whole(1, 10**9), default=20_000, metavar="N", help="default: 20,000"
    )
    parser.add_argument("--seed", type=whole(0, 2**63), default=0, metavar="S", help="default: 0")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("synthetic_avazu.csv.gz"),
        metavar="FILE",
        help="compressed if it ends in .gz (default: synthetic_avazu.csv.gz)",
    )


def run(args: argparse.Namespace) -> int:
    try:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        unfinished = args.out.with_name(args.out.name + ".part")
        try:
            with unfinished.open("wb") as file:
                write(file, args.rows, args.seed, compressed=args.out.suffix == ".gz")
            unfinished.replace(args.out)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise BadArgument(f"--out: {args.out} cannot be written: {error.strerror}") from None
    print(f"wrote {args.rows:,} rows to {args.out}")
    print(
        "THIS FILE IS SYNTHETIC. Its rows and clicks are made up, its signal is planted:\n"
        "use it to see the replay work, never to judge a policy.",
        file=sys.stderr,
    )
    return 0


def write(file: IO[bytes], rows: int, seed: int, *, compressed: bool) -> None:
    """`rows` lines after the header; the same seed gives the same bytes."""
    stream: Any = gzip.GzipFile("", "wb", 6, file, mtime=0) if compressed else file
    try:
        stream.write((HEADER + "\n").encode())
        for chunk in _chunks(rows, seed):
            stream.write(chunk.encode())
    finally:
        if compressed:
            stream.close()


def _chunks(rows: int, seed: int) -> Iterator[str]:
    world = _World(np.random.default_rng([seed, 0]))
    for first in range(0, rows, CHUNK_ROWS):
        count = min(CHUNK_ROWS, rows - first)
        rng = np.random.default_rng([seed, 1, first])
        yield "".join(world.row(first + number, rng) for number in range(count))


class _World:
    """Sites, apps, devices and ads, each with an effect on the odds of a click."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.sites = self._places(rng, 150, 60, 12)
        self.apps = self._places(rng, 100, 40, 10)
        self.models = [(_hash(rng), str(rng.choice([0, 1, 4, 5], p=[0.05, 0.9, 0.03, 0.02])))
                       for _ in range(120)]  # fmt: skip
        self.ads = [self._ad(rng, number) for number in range(200)]
        # A part of an ad's effect is its group's, so that frequent categories carry it.
        group = rng.standard_normal(20)
        self.site_effect = rng.standard_normal(len(self.sites))
        self.app_effect = rng.standard_normal(len(self.apps))
        self.ad_effect = group[np.arange(200) % 20] + 0.5 * rng.standard_normal(200)
        self.hour_effect = 0.3 * np.cos(np.arange(HOURS) / HOURS * 2 * np.pi)
        drawn = [self._effect(*self._drawn(rng)) for _ in range(TRIALS)]
        self.intercept = _intercept(np.array(drawn))

    def _places(
        self, rng: np.random.Generator, ids: int, domains: int, categories: int
    ) -> list[tuple[str, str, str]]:
        names = [_hash(rng) for _ in range(domains)]
        kinds = [_hash(rng) for _ in range(categories)]
        return [(_hash(rng), names[i % domains], kinds[i % categories]) for i in range(ids)]

    def _ad(self, rng: np.random.Generator, number: int) -> list[str]:
        group = number % 20
        width, height = [("320", "50"), ("300", "250"), ("216", "36")][group % 3]
        return [
            str(15_000 + number),
            width,
            height,
            str(1_700 + group),
            str(group % 4),
            str([35, 39, 167, 161, 47, 1327][group % 6]),
            "-1" if rng.random() < 0.45 else str(100_000 + number % 60),
            str(15 + 8 * (group % 9)),
        ]

    def _drawn(self, rng: np.random.Generator) -> tuple[bool, int, int, int]:
        """Whether in an app, which app or site, which ad, at what hour."""
        in_app = bool(rng.random() < 0.36)
        place = _zipf(rng, len(self.apps) if in_app else len(self.sites))
        return in_app, place, _zipf(rng, len(self.ads)), int(rng.integers(HOURS))

    def _effect(self, in_app: bool, place: int, ad: int, hour: int) -> float:
        effect = self.app_effect[place] if in_app else self.site_effect[place]
        return float(STRENGTH * (effect + self.ad_effect[ad] + self.hour_effect[hour]))

    def row(self, number: int, rng: np.random.Generator) -> str:
        in_app, place, ad, hour = self._drawn(rng)
        logit = self.intercept + self._effect(in_app, place, ad, hour)
        clicked = rng.random() < 1.0 / (1.0 + np.exp(-logit))
        model, day = _zipf(rng, len(self.models)), rng.integers(DAYS)
        none = tuple(MISSING[name] for name in ("site_id", "site_domain", "site_category"))
        no_app = tuple(MISSING[name] for name in ("app_id", "app_domain", "app_category"))
        site = none if in_app else self.sites[place]
        app = self.apps[place] if in_app else no_app
        device = MISSING["device_id"] if rng.random() < 0.83 else _hash(rng)
        name, kind = self.models[model]
        connection = str(rng.choice([0, 2, 3], p=[0.86, 0.08, 0.06]))
        fields = [
            f"{MARK}{number + 1}",
            str(int(clicked)),
            f"1410{21 + day}{hour:02}",
            "1005",
            str(int(rng.random() < 0.28)),
            *site,
            *app,
            device,
            _hash(rng),
            name,
            kind,
            connection,
            *self.ads[ad],
        ]
        return ",".join(fields) + "\n"


def _intercept(effects: NDArray[np.float64]) -> float:
    """So that clicks are as frequent as in the real file."""
    found = brentq(lambda a: (1.0 / (1.0 + np.exp(-a - effects))).mean() - CLICK_RATE, -30.0, 30.0)
    return float(found)


def _hash(rng: np.random.Generator) -> str:
    return f"{rng.integers(2**32):08x}"


def _zipf(rng: np.random.Generator, size: int) -> int:
    """Places near 0 are frequent: density 1/x."""
    return int(size ** rng.random()) - 1 if size > 1 else 0
