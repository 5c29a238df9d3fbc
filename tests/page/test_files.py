"""What the files of the page may not hold. Needs no browser."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "service" / "api" / "page"
MODULES = sorted(PAGE.glob("*.js"))


def test_no_module_makes_markup_or_code_of_text():
    ways = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc"
    found = {file.name: re.findall(ways, file.read_text()) for file in MODULES}
    assert MODULES
    assert {name: hits for name, hits in found.items() if hits} == {}


def test_no_file_names_another_host_or_holds_what_the_policy_forbids():
    for file in PAGE.iterdir():
        text = file.read_text().replace("http://www.w3.org/2000/svg", "")
        assert re.findall(r"https?://|wss?://|url\((?!#)|@import|\bdata:", text) == [], file.name
    html = (PAGE / "index.html").read_text()
    assert re.findall(r"\son\w+=|\sstyle=|<style|<script>|=\"/", html) == []
