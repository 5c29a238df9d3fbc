"""Numbers that outlive their worker.

Every worker has a board: cells in a file that it maps into memory, and a list that says which cell
is what. To count is to add to a cell. Whoever is scraped reads all boards. The successor of a
worker that died goes on with its board, so no counter ever goes back.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path

CELLS = 1 << 16
CELL_BYTES = 8

Labels = tuple[str, ...]


class Board:
    def __init__(self, directory: str, number: int) -> None:
        """Without a directory, for this process alone."""
        self._cells_of: dict[tuple[str, Labels], tuple[int, int]] = {}
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
            self._cells_of[name, labels] = self._next, size
            self._next += size

    def at(self, name: str, labels: Labels, size: int = 1) -> int:
        """Where the cells of a series begin; the last cells are shared by all that do not fit."""
        found = self._cells_of.get((name, labels))
        if found is not None:
            return found[0]
        if self._next + size > CELLS - 64:
            return CELLS - 64
        begin = self._next
        if self._list is not None:
            with self._list.open("a") as file:
                file.write(json.dumps([name, labels, size]) + "\n")
        self._cells_of[name, labels] = begin, size
        self._next += size
        return begin

    def forget(self, names: Mapping[str, object]) -> None:
        """Series that say how things are now: of a worker that is gone they say nothing."""
        for (name, _), (begin, _) in self._cells_of.items():
            if name in names:
                self.cells[begin] = math.nan

    def read(self) -> Iterator[tuple[str, Labels, list[float]]]:
        for (name, labels), (begin, size) in list(self._cells_of.items()):
            yield name, labels, [*map(float, self.cells[begin : begin + size])]


def read_all(directory: str, own: Board) -> Iterator[tuple[str, Labels, list[float]]]:
    """Every worker's series, one after the other."""
    if not directory:
        yield from own.read()
        return
    for path in sorted(Path(directory).glob("worker-*.list")):
        series = list(_listed(path))  # before the cells: what is listed has its cells
        with path.with_suffix(".cells").open("rb") as file:
            cells = memoryview(file.read(sum(size for *_, size in series) * CELL_BYTES)).cast("d")
        begin = 0
        for name, labels, size in series:
            yield name, labels, [*map(float, cells[begin : begin + size])]
            begin += size


def workers(directory: str) -> int:
    return len(list(Path(directory).glob("worker-*.list"))) if directory else 1


def _listed(path: Path) -> Iterator[tuple[str, Labels, int]]:
    if not path.exists():
        return
    text = path.read_text()
    for line in text[: text.rfind("\n") + 1].splitlines():  # a last line may be half written
        name, labels, size = json.loads(line)
        yield name, tuple(labels), size
