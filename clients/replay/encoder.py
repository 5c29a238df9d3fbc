"""Categories to d numbers, fitted without rewards: one-hot, then a linear autoencoder.

A linear autoencoder's optimum is the principal subspace in any invertible mix of its axes, and
batch normalisation scales each coordinate. Here the subspace comes from an eigendecomposition and
the mix is drawn: its coordinates are correlated, so that one tells about another that is missing.
Principal components themselves (`pca`) are uncorrelated: nothing to complete from.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .datasets import Row
from .errors import BadFile, TooFew

Floats = NDArray[np.float64]

FORMAT = 1
MIXES = {
    "autoencoder": "linear autoencoder, axes mixed by weights uniform on [0, 1]",
    "gaussian": "the same, mixed by Gaussian weights: weaker correlations",
    "pca": "principal components: uncorrelated, for comparison",
}
FREQUENT_SHARE = 0.001  # a category this frequent has a column of its own
MAX_CATEGORIES = 400  # per field
OTHER, MISSING = "\0other", "\0missing"  # no published category begins with NUL


@dataclass(frozen=True, slots=True)
class Encoder:
    fields: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]  # per field, those with a column
    weights: Floats  # (columns, d)
    centre: Floats  # (d,)
    mix: str

    @property
    def dimension(self) -> int:
        return self.weights.shape[1]

    def encode(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        """(rows, d) float32, which is what the compact body carries."""
        if not rows:
            return np.empty((0, self.dimension), dtype=np.float32)
        codes = one_hot(rows, self.categories) @ self.weights - self.centre
        return np.asarray(codes, dtype=np.float32)

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(
            {
                "format": FORMAT,
                "fields": self.fields,
                "categories": self.categories,
                "mix": self.mix,
            }
        )
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                about=np.frombuffer(text.encode(), dtype=np.uint8),
                weights=self.weights,
                centre=self.centre,
            )

    @classmethod
    def load(cls, path: Path) -> Encoder:
        try:
            # NumPy leaves a file open that it opened itself and could not read.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                about = json.loads(arrays["about"].tobytes())
                if about["format"] != FORMAT:
                    raise ValueError(f"format {about['format']}")
                return cls(
                    tuple(about["fields"]),
                    tuple(map(tuple, about["categories"])),
                    arrays["weights"],
                    arrays["centre"],
                    about["mix"],
                )
        except (OSError, EOFError, ValueError, KeyError, TypeError, BadZipFile) as error:
            raise BadFile(str(path), 1, f"is not an encoder of lacuna replay ({error})") from None


def fit(
    rows: Sequence[Row], fields: Sequence[str], dimension: int, *, mix: str, seed: int = 0
) -> Encoder:
    categories = frequent(rows, len(fields))
    x = one_hot(rows, categories)
    mean = np.asarray(x.mean(axis=0)).ravel()
    covariance = (x.T @ x).toarray() / x.shape[0] - np.outer(mean, mean)
    rank = int(np.linalg.matrix_rank(covariance))
    if rank < dimension:
        raise TooFew(
            f"the categories span {rank} dimensions, fewer than the {dimension} of --dimension"
        )
    variance, axes = np.linalg.eigh(covariance)  # ascending
    axes = axes[:, ::-1][:, :dimension]
    variance = variance[::-1][:dimension]
    # The sign of an eigenvector is the library's whim: the largest entry is positive.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), range(dimension)])
    mixing = _mixing(mix, dimension, seed)
    scale = np.sqrt(variance @ mixing**2)  # standard deviation of each mixed coordinate
    weights = axes @ (mixing / scale)
    return Encoder(tuple(fields), categories, weights, mean @ weights, mix)


def _mixing(mix: str, dimension: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    if mix == "pca":
        return np.eye(dimension)
    if mix == "gaussian":
        return rng.standard_normal((dimension, dimension))
    return rng.random((dimension, dimension))


def frequent(rows: Sequence[Row], fields: int) -> tuple[tuple[str, ...], ...]:
    """Per field the categories with a column: frequent ones, then `other` where there are more."""
    least = FREQUENT_SHARE * len(rows)
    found = []
    for field in range(fields):
        counts = Counter(MISSING if row[field] is None else row[field] or "" for row in rows)
        # Ties by name, so that the order of the rows does not matter.
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        kept = [name for name, count in ordered[:MAX_CATEGORIES] if count >= least]
        found.append(tuple(kept) + ((OTHER,) if len(kept) < len(counts) else ()))
    return tuple(found)


def one_hot(rows: Sequence[Row], categories: Sequence[Sequence[str]]) -> Any:
    """(rows, columns), sparse; a category without a column is `other`, or nothing."""
    at_row: list[int] = []
    at_column: list[int] = []
    first = 0
    for field, names in enumerate(categories):
        columns = {name: first + place for place, name in enumerate(names)}
        other = columns.get(OTHER)
        for number, row in enumerate(rows):
            value = row[field]
            column = columns.get(MISSING if value is None else value, other)
            if column is not None:
                at_row.append(number)
                at_column.append(column)
        first += len(names)
    ones = np.ones(len(at_row))
    return sparse.csr_array((ones, (at_row, at_column)), shape=(len(rows), first))
