"""What the arms of one decision were worth, as bytes.

explanation  version u8 · K u32 · d u32 · mean, K × f64 · bonus, K × f64 · masks, K × ⌈d/8⌉ bytes ·
             completed features, K × d × f64 · arm ids, a JSON list
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

import numpy as np

from .packing import VERSION, Floats, Mask, UnreadableValue

_HEAD = struct.Struct("<BII")


@dataclass(frozen=True, slots=True)
class Explanation:
    arm_ids: list[str]
    mean: Floats  # (K,)
    bonus: Floats  # (K,)
    observed: Mask  # (K, d)
    features: Floats  # (K, d)  x̄

    def pack(self) -> bytes:
        parts = (self.mean, self.bonus, np.packbits(self.observed, axis=1), self.features)
        return b"".join(
            [
                _HEAD.pack(VERSION, *self.features.shape),
                *(np.ascontiguousarray(part).tobytes() for part in parts),
                json.dumps(self.arm_ids).encode(),
            ]
        )

    @classmethod
    def unpack(cls, value: bytes) -> Explanation:
        if len(value) < _HEAD.size or value[0] != VERSION:
            raise UnreadableValue(f"a stored explanation is not of version {VERSION}")
        _, k, d = _HEAD.unpack_from(value)
        mask_bytes, at = k * ((d + 7) // 8), _HEAD.size
        worth = np.frombuffer(value, "<f8", 2 * k, at).reshape(2, k)
        at += 16 * k
        masks = np.frombuffer(value, np.uint8, mask_bytes, at).reshape(k, -1)
        at += mask_bytes
        features = np.frombuffer(value, "<f8", k * d, at).reshape(k, d)
        observed = np.unpackbits(masks, axis=1, count=d).astype(np.bool_)
        arm_ids = json.loads(value[at + 8 * k * d :])
        return cls(arm_ids, worth[0], worth[1], observed, features)
