"""The `lacuna` command.

A command is a module with `add_arguments(parser)` and `run(args) -> int`. It is imported only when
it is chosen, so `lacuna --help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from service import __version__

COMMANDS = {
    "serve": ("start the service", "service.serve"),
    "demo": ("show it at work, with simulated traffic", "clients.demo.command"),
    "simulate": ("measure regret in a synthetic environment", "clients.simulate.command"),
    "loadtest": ("put load on a running service", "clients.loadtest.command"),
    "replay": ("measure click-through rates on logs of real clicks", "clients.replay.command"),
    "sample": ("write a synthetic log to try the replay with", "clients.replay.synthetic"),
}

EXAMPLES = """\
examples:
  lacuna serve               the service on port 8080, with a store of its own
  lacuna demo                a minute of simulated traffic, then a summary and a picture
  lacuna loadtest URL        load on a running service, and proof that nothing was lost
  lacuna simulate --help     what a simulation can vary
  lacuna simulate            regret of each policy in the default environment
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        args = build_parser(argv).parse_args(argv)
        status: int = args.run(args)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader left (`lacuna … | head`). Python flushes stdout again at exit: let it succeed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if not is_ours(error):
            raise
        print("lacuna: error:", *str(error).split(), file=sys.stderr)
        return 2


def build_parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    """List every command, and give the arguments of the one that `argv` chooses."""
    parser = argparse.ArgumentParser(
        prog="lacuna",
        description="Online recommendation with noisy or missing features.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"lacuna {__version__}")
    commands = parser.add_subparsers(metavar="command", required=True)
    chosen = next((word for word in argv if not word.startswith("-")), None)
    for name, (summary, module_path) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=f"{summary.capitalize()}.")
        if name == chosen:
            module = import_module(module_path)
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def is_ours(error: Exception) -> bool:
    """An error class defined in Lacuna is a message to a person; any other is a bug."""
    return type(error).__module__.partition(".")[0] in {"service", "clients"}


if __name__ == "__main__":
    sys.exit(main())
