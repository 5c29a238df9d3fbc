"""What a replay refuses besides what every command does.

CommandError
├── BadFile        broken, truncated or foreign; the sentence names file and line
├── TooFew         the files hold fewer impressions than the protocol needs
└── OtherReplay    `--out` holds the state of another replay
"""

from clients.errors import CommandError


class BadFile(CommandError):
    def __init__(self, name: str, line: int, problem: str) -> None:
        super().__init__(f"{name}, line {line:,}: {problem}")
        self.line = line


class TooFew(CommandError):
    pass


class OtherReplay(CommandError):
    pass
