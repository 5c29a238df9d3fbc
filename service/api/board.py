"""Numbers that outlive their worker.

Every worker has a board: cells in a file that it maps into memory, and a list that says which cell
is what. To count is to add to a cell. Whoever is scraped reads all boards. The successor of a
worker that died goes on with its board, so no counter ever goes back.
"""

from __future__ import annotations

import json
import math
import mmap
from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path

CELLS = 1 << 16
CELL_BYTES = 8

Labels = tuple[str, ...]
Series = tuple[str, Labels, list[float]]


class Board:
    def __init__(self, directory: str, number: int) -> None:
        """Without a directory, for this process alone."""
        self._places: dict[tuple[str, Labels], tuple[int, int]] = {}
        self._sizes: Counter[str] = Counter()
        self._next = 0
        self._list: Path | None = None
        if not directory:
            self.cells = memoryview(bytearray(CELLS * CELL_BYTES)).cast("d")
            return
        path = Path(directory) / f"worker-{number}.cells"
        self._list = path.with_suffix(".list")
        with path.open("ab") as file:
            file.truncate(CELLS * CELL_BYTES)
        with path.open("r+b") as file:
            self.cells = memoryview(mmap.mmap(file.fileno(), CELLS * CELL_BYTES)).cast("d")
        for name, labels, size in _listed(self._list):
            self._take(name, labels, size)

    def at(self, name: str, labels: Labels, size: int = 1) -> int:
        """Where the cells of a series begin; the last cells are shared by all that do not fit."""
        found = self._places.get((name, labels))
        if found is not None:
            return found[0]
        if self._next + size > CELLS - 64:
            return CELLS - 64
        begin = self._next
        if self._list is not None:
            with self._list.open("a") as file:
                file.write(json.dumps([name, labels, size]) + "\n")
        self._take(name, labels, size)
        return begin

    def _take(self, name: str, labels: Labels, size: int) -> None:
        self._places[name, labels] = self._next, size
        self._next += size
        self._sizes[name] += size

    def has(self, name: str, labels: Labels) -> bool:
        return (name, labels) in self._places

    def cells_of(self, name: str) -> int:
        """How many all series of that name have."""
        return self._sizes[name]

    def forget(self, names: Container[str]) -> None:
        """Series that say how things are now: of a worker that is gone they say nothing."""
        for name, labels in self._places:
            if name in names:
                self.forget_one(name, labels)

    def forget_one(self, name: str, labels: Labels) -> None:
        begin, size = self._places.get((name, labels), (0, 0))
        for cell in range(begin, begin + size):
            self.cells[cell] = math.nan

    def read(self) -> list[Series]:
        return [
            (name, labels, [*map(float, self.cells[begin : begin + size])])
            for (name, labels), (begin, size) in list(self._places.items())
        ]


def read_all(directory: str, own: Board) -> Iterator[list[Series]]:
    """Every worker's series, worker by worker."""
    if not directory:
        yield own.read()
        return
    for path in sorted(Path(directory).glob("worker-*.list")):
        series = list(_listed(path))  # before the cells: what is listed has its cells
        with path.with_suffix(".cells").open("rb") as file:
            cells = memoryview(file.read(sum(size for *_, size in series) * CELL_BYTES)).cast("d")
        begin, read = 0, []
        for name, labels, size in series:
            read.append((name, labels, [*map(float, cells[begin : begin + size])]))
            begin += size
        yield read


def _listed(path: Path) -> Iterator[tuple[str, Labels, int]]:
    if not path.exists():
        return
    text = path.read_text()
    for line in text[: text.rfind("\n") + 1].splitlines():  # a last line may be half written
        name, labels, size = json.loads(line)
        yield name, tuple(labels), size
