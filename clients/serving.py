"""A `lacuna serve` of one's own: on a free port, with its data in a given folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

START_TIMEOUT_S = 180.0  # kernels may have to be compiled first
END_TIMEOUT_S = 60.0


class DidNotStart(Exception):
    """The service ended, or said nothing, before it was ready."""


class OwnService:
    """Started on entry, ended on exit; `url` is where it answers."""

    def __init__(
        self, data_dir: Path, *arguments: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self.url = ""
        self._environment = environment or {}
        self._arguments = ("--data-dir", str(data_dir), *arguments)
        self._said: list[str] = []
        self._known = threading.Event()

    def __enter__(self) -> OwnService:
        # What the caller's shell says about another service is not meant for this one.
        environment = {k: v for k, v in os.environ.items() if not k.startswith("LACUNA_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "service.cli", "serve", "--port", "0", *self._arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**environment, **self._environment},
            start_new_session=True,  # Ctrl-C is for whoever started it, who then ends it
        )
        assert self.process.stdout is not None
        self._reader = threading.Thread(
            target=self._listen, args=(self.process.stdout,), daemon=True
        )
        self._reader.start()
        try:
            self._known.wait(START_TIMEOUT_S)
        except BaseException:
            self.end()
            raise
        if not self.url:
            self.end()
            said = " ".join("".join(self._said[-5:]).split())
            raise DidNotStart(f"the service did not start: {said or 'it said nothing'}")
        return self

    def _listen(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._said.append(line)
                del self._said[:-100]
                if not self.url and (found := re.search(r"ready at (http://\S+)", line)):
                    self.url = found[1]
                    self._known.set()
        self._known.set()

    @property
    def said(self) -> str:
        """The last lines of its log."""
        return "".join(self._said)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()
