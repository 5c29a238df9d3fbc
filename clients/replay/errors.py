"""What a replay refuses, and nothing else.

ReplayError
├── BadArgument    a value of the command line; the sentence names the argument
├── BadFile        broken, truncated or foreign; the sentence names file and line
├── TooFew         the files hold fewer impressions than the protocol needs
├── OtherReplay    `--out` holds the state of another replay
├── MissingExtra   a package of the `clients` extra is not installed
├── ServiceFailed  the service at `--url` did not answer, or refused
└── WorkerDied     a worker process ended before its run did
"""


class ReplayError(Exception):
    """Any refusal of a replay; its text is a sentence for a person."""


class BadArgument(ReplayError):
    pass


class BadFile(ReplayError):
    def __init__(self, name: str, line: int, problem: str) -> None:
        super().__init__(f"{name}, line {line:,}: {problem}")
        self.line = line


class TooFew(ReplayError):
    pass


class OtherReplay(ReplayError):
    pass


class MissingExtra(ReplayError):
    pass


class ServiceFailed(ReplayError):
    pass


class WorkerDied(ReplayError):
    pass
