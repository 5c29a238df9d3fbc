"""Named arrays and a few scalars ⇄ bytes: versioned, compact, checked; no pickle.

    magic "LACUNA" · kind u8 · format u8 · header length u32 · header JSON · arrays · CRC-32 u32

All little-endian. The header names each array with its type and shape, in the order they follow.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arms import Floats
from .errors import BadState

MAGIC = b"LACUNA"
FORMAT = 1
_HEAD = struct.Struct("<6sBBI")
_CRC = struct.Struct("<I")
_TYPES = ("<f8", "|u1")  # all we write; anything else is not ours


class Kind(IntEnum):
    LEARNER = 1
    MOMENTS = 2
    MODEL = 3
    EXPORT = 4


def pack(kind: Kind, scalars: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    return b"".join(pack_parts(kind, scalars, arrays))


def pack_parts(
    kind: Kind, scalars: Mapping[str, Any], arrays: Mapping[str, NDArray[Any] | list[bytes]]
) -> list[bytes]:
    """The same as copies that follow each other: of a large state there need not be two.

    An array of bytes may be given in parts, too.
    """
    layout, body = [], []
    for name, array in arrays.items():
        if isinstance(array, list):
            layout.append([name, "|u1", [sum(map(len, array))]])
            body += array
        else:
            layout.append([name, array.dtype.str, list(array.shape)])
            body.append(array.tobytes())
    header = json.dumps({"scalars": dict(scalars), "arrays": layout}, separators=(",", ":"))
    parts = [_HEAD.pack(MAGIC, kind, FORMAT, len(header.encode())), header.encode(), *body]
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return [*parts, _CRC.pack(checksum)]


def unpack(
    kind: Kind, packed: bytes | memoryview
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The arrays are views of what is given, to be read only."""
    what, blob = kind.name.lower(), memoryview(packed)
    if len(blob) < _HEAD.size or blob[: len(MAGIC)] != MAGIC:
        raise BadState(f"these bytes are not a Lacuna {what}")
    _, found, version, header_size = _HEAD.unpack_from(blob)
    if version > FORMAT:
        raise BadState(
            f"this {what} was written by a newer version (format {version}, this reads {FORMAT})"
        )
    if found != kind:
        raise BadState(f"these bytes hold another kind of Lacuna state ({found}), not a {what}")
    start = _HEAD.size + header_size
    if len(blob) < start + _CRC.size:
        raise BadState(f"this {what} is truncated: it ends within its header")
    try:
        header = json.loads(bytes(blob[_HEAD.size : start]))
        layout = [(str(name), str(type_), tuple(shape)) for name, type_, shape in header["arrays"]]
        sizes = [_size(type_, shape) for _, type_, shape in layout]
        scalars = dict(header["scalars"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadState(f"the header of this {what} is damaged") from error
    expected = start + sum(sizes) + _CRC.size
    if len(blob) < expected:
        raise BadState(f"this {what} is truncated: {len(blob):,} of {expected:,} bytes")
    if len(blob) > expected:
        raise BadState(f"this {what} has {len(blob) - expected:,} bytes too many")
    if _CRC.unpack_from(blob, expected - _CRC.size)[0] != zlib.crc32(blob[: -_CRC.size]):
        raise BadState(f"this {what} is damaged: its checksum does not match")
    arrays = {}
    for (name, type_, shape), size in zip(layout, sizes, strict=True):
        flat = np.frombuffer(blob, dtype=type_, count=math.prod(shape), offset=start)
        if not np.isfinite(flat).all():
            raise BadState(f"this {what} holds numbers that are not finite ({name})")
        arrays[name] = flat.reshape(shape)
        start += size
    return scalars, arrays


def _size(type_: str, shape: tuple[int, ...]) -> int:
    if type_ not in _TYPES or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError
    return np.dtype(type_).itemsize * math.prod(shape)


@lru_cache(maxsize=8)
def _upper(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n)


def half(symmetric: Floats) -> Floats:
    """The upper half of a symmetric matrix, row by row: n(n+1)/2 numbers."""
    return symmetric[_upper(len(symmetric))]


def whole(upper: Floats, n: int) -> Floats:
    """Undo `half`."""
    if upper.shape != (n * (n + 1) // 2,):
        raise BadState(f"a matrix of {n} columns has the wrong number of entries")
    full = np.empty((n, n))
    rows, columns = _upper(n)
    full[rows, columns] = upper
    full[columns, rows] = upper
    return full
