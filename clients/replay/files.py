"""Published files as they come: plain, gzip or zip, also gzip within zip; never all in memory."""

from __future__ import annotations

import gzip
import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from clients.errors import BadArgument

from .errors import BadFile

GZIP, ZIP = b"\x1f\x8b", b"PK"


@dataclass(frozen=True, slots=True)
class Source:
    """A file, or a member of a zip file."""

    path: Path
    member: str | None = None
    encoding: str = "utf-8"

    @property
    def name(self) -> str:
        return str(self.path) if self.member is None else f"{self.path}:{self.member}"

    def lines(self) -> Iterator[str]:
        """Lines with their ends; whatever cannot be read names the line where it failed."""
        number = 0
        try:
            with self._opened() as stream:
                text = io.TextIOWrapper(stream, encoding=self.encoding, newline="")
                for number, line in enumerate(text, 1):  # noqa: B007  it says where we are
                    yield line
        except EOFError:
            raise BadFile(self.name, number + 1, "the compressed data end early") from None
        except (zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
            problem = f"the compressed data are damaged ({error})"
            raise BadFile(self.name, number + 1, problem) from None
        except UnicodeDecodeError:
            raise BadFile(self.name, number + 1, f"is not {self.encoding} text") from None
        except OSError as error:
            raise BadFile(self.name, number + 1, f"cannot be read: {error.strerror}") from None

    def first_line(self) -> str:
        return next(self.lines(), "").strip("\r\n")

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        if self.member is None:
            with self.path.open("rb") as file, _decompressed(file) as stream:
                yield stream
        else:
            with (
                zipfile.ZipFile(self.path) as archive,
                archive.open(self.member) as raw,
                _decompressed(raw) as stream,
            ):
                yield stream


def sources(paths: Sequence[Path], encoding: str = "utf-8") -> list[Source]:
    """Every file given; a zip file stands for its members, a folder for its files."""
    found: list[Source] = []
    for path in paths:
        if path.is_dir():
            inner = sorted(one for one in path.iterdir() if one.is_file())
            found += sources(inner, encoding)
        elif not path.exists():
            raise BadArgument(f"there is no file {path}")
        elif _begins(path) == ZIP:
            found += [Source(path, member, encoding) for member in _members(path)]
        else:
            found.append(Source(path, encoding=encoding))
    return found


def _members(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return [one.filename for one in archive.infolist() if not one.is_dir()]
    except zipfile.BadZipFile as error:
        raise BadFile(str(path), 1, f"is a damaged or truncated zip file ({error})") from None


def _begins(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(2)
    except OSError as error:
        raise BadFile(str(path), 1, f"cannot be read: {error.strerror}") from None


@contextmanager
def _decompressed(raw: IO[bytes]) -> Iterator[IO[bytes]]:
    gzipped = raw.read(2) == GZIP
    raw.seek(0)
    if gzipped:
        with gzip.GzipFile(fileobj=raw) as stream:
            yield cast(IO[bytes], stream)
    else:
        yield raw
