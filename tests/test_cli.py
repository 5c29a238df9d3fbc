import os
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from importlib import import_module
from types import ModuleType

import pytest

from service import __version__, cli


class Refused(Exception):
    __module__ = "clients.example"


@pytest.fixture
def command(monkeypatch):
    """Put a command named `example` in the table; the test says what it does."""

    def install(run: Callable[[Namespace], int]) -> None:
        def add_arguments(parser: ArgumentParser) -> None:
            parser.add_argument("--rounds", type=int, default=10)

        module = ModuleType("example_command")
        module.add_arguments = add_arguments
        module.run = run
        monkeypatch.setitem(sys.modules, "example_command", module)
        monkeypatch.setattr(cli, "COMMANDS", {"example": ("do a thing", "example_command")})

    return install


def test_a_command_gets_its_arguments_and_gives_the_exit_status(command):
    command(lambda args: args.rounds)
    assert cli.main(["example", "--rounds", "7"]) == 7
    assert cli.main(["example"]) == 10


def test_help_lists_every_command_with_its_summary(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    for name, (summary, _) in cli.COMMANDS.items():
        assert name in out
        assert summary in out


def test_help_of_a_command_lists_its_own_arguments(command, capsys):
    command(lambda _: 0)
    with pytest.raises(SystemExit):
        cli.main(["example", "--help"])
    assert "--rounds" in capsys.readouterr().out


def test_version_is_printed(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"lacuna {__version__}\n"


@pytest.mark.parametrize("argv", [[], ["no-such-command"], ["example", "--no-such-flag"]])
def test_wrong_usage_exits_2_and_says_why(command, capsys, argv):
    command(lambda _: 0)
    with pytest.raises(SystemExit) as stop:
        cli.main(argv)
    assert stop.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_an_error_of_ours_is_one_line_and_exit_2(command, capsys):
    def run(_):
        raise Refused("features: expected 3,\n  got 2")

    command(run)
    assert cli.main(["example"]) == 2
    assert capsys.readouterr().err == "lacuna: error: features: expected 3, got 2\n"


def test_any_other_error_keeps_its_traceback(command):
    def run(_):
        raise ZeroDivisionError

    command(run)
    with pytest.raises(ZeroDivisionError):
        cli.main(["example"])


def test_interrupt_exits_130_without_a_traceback(command, capsys):
    def run(_):
        raise KeyboardInterrupt

    command(run)
    assert cli.main(["example"]) == 130
    assert capsys.readouterr().err == ""


def test_a_reader_that_leaves_early_causes_no_traceback():
    code = (
        "import sys, types; from service import cli\n"
        "def run(args):\n"
        "    for _ in range(100_000): print('line')\n"
        "    return 0\n"
        "sys.modules['example_command'] = types.SimpleNamespace(\n"
        "    add_arguments=lambda parser: None, run=run)\n"
        "cli.COMMANDS = {'example': ('do a thing', 'example_command')}\n"
        "sys.exit(cli.main(['example']))\n"
    )
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as stdout:
        done = subprocess.run([sys.executable, "-c", code], stdout=stdout, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (141, b"")


def test_help_imports_neither_numpy_nor_a_web_framework():
    code = (
        "import sys; from service import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit(' '.join({'numpy', 'numba', 'fastapi', 'redis'} & set(sys.modules)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_in_the_table_exists(name):
    module = import_module(cli.COMMANDS[name][1])
    assert callable(module.add_arguments)
    assert callable(module.run)
