"""A process that makes load: a job on its standard input, then steps; what it finds on its output.

The end of its input is the end of it, so that none outlives whoever started it.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys

import msgspec

from clients.errors import CommandError

from .generator import Generator
from .job import Done, Failed, Job, Message, Ready, Step

encode = msgspec.json.Encoder().encode


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it decides
    # The ledger only grows and has no cycles: a collection would be a pause in every latency.
    gc.disable()
    try:
        generator = Generator(msgspec.json.decode(sys.stdin.buffer.readline(), type=Job))
        say(Ready())
        while True:
            line = sys.stdin.buffer.readline()
            if not line:
                return 0
            if line.strip() == b"stop":  # for a step that had just ended
                continue
            step = msgspec.json.decode(line, type=Step)
            elapsed_s = generator.run(step, say, stopped)
            say(Done(elapsed_s, generator.traffic.account))
    except CommandError as error:
        say(Failed(str(error)))
        return 1
    except BrokenPipeError:
        # Nobody listens any more; Python flushes stdout again at exit: let it succeed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def say(message: Message) -> None:
    sys.stdout.buffer.write(encode(message) + b"\n")
    sys.stdout.buffer.flush()


def stopped() -> bool:
    """Anything said during a step, its end included, means: enough."""
    return bool(select.select((0,), (), (), 0.0)[0])


if __name__ == "__main__":
    sys.exit(main())
