"""What a simulation refuses, and nothing else.

SimulateError
├── BadArgument    a value of the command line; the sentence names the argument
├── MissingExtra   a package of the `clients` extra is not installed
├── ServiceFailed  the service at `--url` did not answer, or refused
└── WorkerDied     a worker process ended before its run did
"""


class SimulateError(Exception):
    """Any refusal of a simulation; its text is a sentence for a person."""


class BadArgument(SimulateError):
    pass


class MissingExtra(SimulateError):
    pass


class ServiceFailed(SimulateError):
    pass


class WorkerDied(SimulateError):
    pass
