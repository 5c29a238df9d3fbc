"""What a command refuses, and nothing else.

CommandError
├── BadArgument    a value of the command line; the sentence names the argument
├── MissingExtra   a package of the `clients` extra is not installed
├── ServiceFailed  a service did not start, did not answer, or refused
└── WorkerDied     a process of the command's own ended before its work did

`clients.replay.errors` adds what only files can be. The Python client has errors of its own.
"""


class CommandError(Exception):
    """Any refusal; its text is a sentence for a person."""


class BadArgument(CommandError):
    pass


class MissingExtra(CommandError):
    pass


class ServiceFailed(CommandError):
    pass


class WorkerDied(CommandError):
    pass
