"""What the values look like, byte by byte. Little-endian; a version byte in front of each.

decision   version u8 · state u8 (P, R or D) · learns u8 · answer length u16 · round, 20 digits ·
           answer · tail. The tail of a pending decision is its row; of a rewarded or defaulted one
           its reward, f64. The scripts cut it in just these places.
answer     nonce, 8 bytes · index u32 · arms u32 · model version u64 · probability f64 ·
           degraded u8 · arm id, UTF-8
row        mask, ⌈d/8⌉ bytes, most significant bit first · x̄, d × f64
log entry  r: version u8 · row · reward f64
           m: version u8 · power u64 · arms u64 · p̂ f64 · ν̂, d × f64 · Σ̂, upper half, f64
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import StoreError

VERSION = 1
PENDING, REWARDED, DEFAULTED = b"P", b"R", b"D"

_HEAD = struct.Struct("<BcBH20s")
_ANSWER = struct.Struct("<8sIIQdB")
_BOTH = struct.Struct("<BcBH20s8sIIQdB")
_REWARD = struct.Struct("<d")
_MARK = struct.Struct("<BQQd")
_NO_ROUND = b"0" * 20  # the script that stores a decision writes its round here

MAX_MAGNITUDE = 1e100  # squares stay finite; a completed feature may exceed those that came

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class UnreadableValue(StoreError):
    """A stored value that this version cannot read."""


@dataclass(slots=True)
class Answer:
    """What a select was told."""

    arm: str
    index: int
    arms: int  # K
    model_version: int
    probability: float
    degraded: bool
    nonce: bytes  # tells a worker its own decision from another's with the same event id
    round: int = 0
    reward: float | None = None
    state: bytes = PENDING


@dataclass(frozen=True, slots=True)
class Mark:
    """A refresh of all rows before it, with these parameters."""

    power: int
    arms: int
    p_hat: float
    nu: Floats  # (d,)
    sigma: Floats  # (d, d)


def rows_apart(observed: Mask, xbar: Floats) -> list[bytes]:
    """The row of each of many."""
    masks, numbers = np.packbits(observed, axis=1), np.ascontiguousarray(xbar)
    mask_bytes, number_bytes = masks.tobytes(), numbers.tobytes()
    m, n = masks.shape[1], 8 * numbers.shape[1]
    return [
        mask_bytes[m * r : m * r + m] + number_bytes[n * r : n * r + n] for r in range(len(masks))
    ]


def rows(rewarded: list[bytes], d: int) -> tuple[Mask, Floats, Floats]:
    """Log entries r → masks (m, d), x̄ (m, d) and rewards (m,)."""
    size = row_size(d)
    if any(len(value) != size for value in rewarded):
        raise UnreadableValue(f"a logged reward is not of {d} features")
    return joined_rows(b"".join(rewarded), d)


def joined_rows(joined: bytes, d: int) -> tuple[Mask, Floats, Floats]:
    """The same of entries that lie one behind the other."""
    mask_bytes, size = (d + 7) // 8, row_size(d)
    table = np.frombuffer(joined, dtype=np.uint8)
    if len(table) % size or (table[::size] != VERSION).any():
        raise UnreadableValue(f"a logged reward is not of version {VERSION} and {d} features")
    table = table.reshape(-1, size)
    observed = np.unpackbits(table[:, 1 : 1 + mask_bytes], axis=1, count=d).astype(np.bool_)
    numbers = np.ascontiguousarray(table[:, 1 + mask_bytes :]).view("<f8")
    return observed, numbers[:, :d], np.ascontiguousarray(numbers[:, d])


def row_size(d: int) -> int:
    """Bytes of a log entry r."""
    return 1 + (d + 7) // 8 + 8 * d + 8


def rewarded_rows(observed: Mask, xbar: Floats, y: Floats) -> list[bytes]:
    """Log entries r."""
    version = bytes([VERSION])
    rewards = [pack_reward(reward) for reward in y.tolist()]
    parts = zip(rows_apart(observed, xbar), rewards, strict=True)
    return [version + chosen_row + reward for chosen_row, reward in parts]


def pack_reward(reward: float) -> bytes:
    return _REWARD.pack(reward)


def unpack_reward(value: bytes) -> float:
    return float(_REWARD.unpack(value)[0])


def decision(answer: Answer, learns: bool, chosen_row: bytes) -> bytes:
    arm = answer.arm.encode()
    head = _BOTH.pack(
        VERSION,
        PENDING,
        learns,
        _ANSWER.size + len(arm),
        _NO_ROUND,
        answer.nonce,
        answer.index,
        answer.arms,
        answer.model_version,
        answer.probability,
        answer.degraded,
    )
    return head + arm + chosen_row


def as_degraded(record: bytes) -> bytes:
    """A decision that was made for the store, and then told without it."""
    return record[: _BOTH.size - 1] + b"\x01" + record[_BOTH.size :]


def answer(value: bytes) -> Answer:
    """What was told, from a stored decision in any state."""
    if len(value) < _HEAD.size or value[0] != VERSION:
        raise UnreadableValue(f"a stored decision is not of version {VERSION}")
    _, state, _, length, number = _HEAD.unpack_from(value)
    end = _HEAD.size + length
    nonce, index, arms, version, probability, degraded = _ANSWER.unpack_from(value, _HEAD.size)
    return Answer(
        arm=value[_HEAD.size + _ANSWER.size : end].decode(),
        index=index,
        arms=arms,
        model_version=version,
        probability=probability,
        degraded=bool(degraded),
        nonce=nonce,
        round=int(number),
        reward=None if state == PENDING else unpack_reward(value[end : end + 8]),
        state=state,
    )


def check_decision(value: bytes, d: int) -> None:
    """Whether the scripts can do with it what they will, and its row can be learnt from."""
    told = answer(value)
    tail = value[_HEAD.size + int.from_bytes(value[3:5], "little") :]
    mask_bytes, numbers_in_it = ((d + 7) // 8, d) if told.state == PENDING else (0, 1)
    size = mask_bytes + 8 * numbers_in_it
    if told.state not in (PENDING, REWARDED, DEFAULTED) or value[2] > 1 or len(tail) != size:
        raise UnreadableValue(f"a decision is not of version {VERSION} and {d} features")
    numbers = np.frombuffer(tail, dtype="<f8", offset=mask_bytes)
    if not (np.abs(numbers) <= MAX_MAGNITUDE).all():
        raise UnreadableValue("a decision holds numbers that cannot be used")


def mark(power: int, arms: int, p_hat: float, nu: Floats, sigma: Floats) -> bytes:
    upper = sigma[np.triu_indices(len(nu))]
    return _MARK.pack(VERSION, power, arms, p_hat) + nu.tobytes() + upper.tobytes()


def read_mark(value: bytes) -> Mark:
    if len(value) < _MARK.size or value[0] != VERSION:
        raise UnreadableValue(f"a refresh mark is not of version {VERSION}")
    _, power, arms, p_hat = _MARK.unpack_from(value)
    numbers = np.frombuffer(value, dtype="<f8", offset=_MARK.size)
    d = int((np.sqrt(9 + 8 * len(numbers)) - 3) / 2)  # d + d(d+1)/2 numbers
    sigma = np.empty((d, d))
    upper = np.triu_indices(d)
    sigma[upper] = numbers[d:]
    sigma.T[upper] = numbers[d:]
    return Mark(power, arms, p_hat, numbers[:d].copy(), sigma)
