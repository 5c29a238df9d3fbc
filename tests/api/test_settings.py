import re
from dataclasses import fields
from pathlib import Path

import pytest

from service import cli
from service.errors import BadSetting
from service.settings import Settings, variable

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"


def documented() -> dict[str, tuple[str, str]]:
    """Variable → flag, default."""
    row = r"^\| `(LACUNA_\w+)` \|(.*?)\|(.*?)\| .+ \|$"
    rows = re.findall(row, DOCUMENT.read_text(), re.MULTILINE)
    return {name: (flag.strip(" `"), default.strip(" `")) for name, flag, default in rows}


def test_every_setting_is_documented_with_its_flag_and_default():
    expected = {}
    for one in fields(Settings):
        flag = "--" + one.name.replace("_", "-") if one.metadata["flag"] else ""
        default = str(one.default).lower() if isinstance(one.default, bool) else str(one.default)
        expected[variable(one.name)] = (flag, "empty" if default in ("", "()") else default)
    assert documented() == expected


def test_every_flag_is_in_the_help(capsys):
    with pytest.raises(SystemExit):
        cli.main(["serve", "--help"])
    text = capsys.readouterr().out
    for flag, _ in documented().values():
        assert flag in text


def test_settings_come_from_the_environment():
    given = Settings.from_environment(
        {
            "LACUNA_PORT": "9000",
            "LACUNA_API_KEYS": " one, two ,,",
            "LACUNA_AUTO_CREATE": "off",
            "LACUNA_LOG_FORMAT": "JSON",
            "LACUNA_DRAIN_IDLE_S": "0.5",
            "LACUNA_WORKERS": "",
            "PORT": "1",
        }
    )
    assert given == Settings(
        port=9000, api_keys=("one", "two"), auto_create=False, log_format="json", drain_idle_s=0.5
    )


def test_settings_survive_the_way_to_a_worker():
    settings = Settings(port=1, api_keys=("a", "b"), access_log=True, idle_s=3.5, redis_url="x")
    assert Settings.from_environment(settings.to_environment()) == settings


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("LACUNA_PORT", "http"),
        ("LACUNA_PORT", "70000"),
        ("LACUNA_PORT", "-1"),
        ("LACUNA_WORKERS", "0"),
        ("LACUNA_DRAIN_IDLE_S", "nan"),
        ("LACUNA_DRAIN_IDLE_S", "soon"),
        ("LACUNA_LOG_LEVEL", "loud"),
        ("LACUNA_ACCESS_LOG", "maybe"),
        ("LACUNA_API_KEYS", " , "),
    ],
)
def test_a_bad_setting_is_refused_by_its_name(name, text):
    with pytest.raises(BadSetting, match=name):
        Settings.from_environment({name: text})


def test_secrets_do_not_show():
    shown = repr(Settings(api_keys=("hidden",), redis_url="redis://:hidden@host"))
    assert "hidden" not in shown


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--port", "x"], "LACUNA_PORT must be a whole number"),
        (["--redis-url", "http://x", "--port", "0"], "must begin with one of"),
        (["--host", "256.0.0.1", "--port", "0"], "cannot be listened on"),
    ],
)
def test_a_start_that_cannot_be_says_why_in_one_line(capsys, argv, said):
    assert cli.main(["serve", *argv]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
