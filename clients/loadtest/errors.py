"""What a load test refuses, and nothing else.

LoadtestError
├── BadArgument    a value of the command line; the sentence names the argument
├── MissingExtra   a package of the `clients` extra is not installed
├── ServiceFailed  the service did not answer, or refused, before or after the load
└── WorkerDied     a process that makes load ended before its time
"""


class LoadtestError(Exception):
    """Any refusal of a load test; its text is a sentence for a person."""


class BadArgument(LoadtestError):
    pass


class MissingExtra(LoadtestError):
    pass


class ServiceFailed(LoadtestError):
    pass


class WorkerDied(LoadtestError):
    pass
