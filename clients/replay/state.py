"""What is on disk of a replay, so that it can go on: one small file per run, written whole."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from .errors import OtherReplay
from .protocol import Setting

FOLDER = "state"


@dataclass(frozen=True, slots=True)
class Job:
    """One run: a policy with one seed in one setting."""

    setting: Setting
    policy: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.policy}-{self.setting.erased:g}-{self.seed}"


@dataclass(slots=True)
class Progress:
    """How far a run has come."""

    hits: NDArray[np.bool_]  # (T,) false where not yet played
    done: int = 0  # rounds, all before it are played
    learner: bytes = b""  # in process: its state; over HTTP: its name
    seconds: float = 0.0


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER

    def claim(self, identity: dict[str, Any], *, fresh: bool = False) -> bool:
        """Make the folder this replay's; whether it held runs of it already."""
        path = self.folder / "replay.json"
        text = json.dumps(identity, indent=1, sort_keys=True)
        known = path.exists() and not fresh
        if known:
            differing = _differing(path, identity)
            if differing:
                raise OtherReplay(
                    f"--out: {self.folder.parent} holds another replay ({differing}); "
                    "take another folder, or --fresh to overwrite it"
                )
        else:
            for old in self.folder.glob("*.npz"):
                old.unlink()
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
        return known and any(self.folder.glob("*.npz"))

    def load(self, job: Job) -> Progress:
        new = Progress(np.zeros(job.setting.rounds, dtype=np.bool_))
        try:
            # NumPy leaves a file open that it opened itself and could not read.
            with (
                self._path(job).open("rb") as file,
                np.load(file, allow_pickle=False) as saved,
            ):
                hits = np.unpackbits(saved["hits"], count=job.setting.rounds).astype(np.bool_)
                done, seconds = int(saved["done"]), float(saved["seconds"])
                return Progress(hits, done, saved["learner"].tobytes(), seconds)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            return new  # never begun, or its file was cut short

    def save(self, job: Job, progress: Progress) -> None:
        path = self._path(job)
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        with temporary.open("wb") as file:
            np.savez(
                file,
                hits=np.packbits(progress.hits),
                done=progress.done,
                seconds=progress.seconds,
                learner=np.frombuffer(progress.learner, dtype=np.uint8),
            )
        temporary.replace(path)

    def _path(self, job: Job) -> Path:
        return self.folder / f"{job.name}.npz"


def _differing(path: Path, identity: dict[str, Any]) -> str:
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "its replay.json is unreadable"
    # Through JSON, as the one on disk went.
    now = json.loads(json.dumps(identity))
    names = [name for name in now | before if now.get(name) != before.get(name)]
    return ", ".join(f"{name} {before.get(name)}, not {now.get(name)}" for name in names)
