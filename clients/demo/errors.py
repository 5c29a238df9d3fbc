"""What a demo refuses, and nothing else.

DemoError
├── MissingExtra   a package of the `clients` extra is not installed
└── ServiceFailed  the service did not start, did not answer, or refused
"""


class DemoError(Exception):
    """Any refusal of a demo; its text is a sentence for a person."""


class MissingExtra(DemoError):
    pass


class ServiceFailed(DemoError):
    pass
