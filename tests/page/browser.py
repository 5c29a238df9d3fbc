"""Debian's Chromium as Playwright drives it, and what a page may not do: complain, or call out."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
# As root there is no sandbox; the rest keeps Chromium from calling home.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
WAIT_MS = 30_000


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser; the test is skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Tab:
    """A page of one service, in a session of its own."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.url = url
        self.context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
        self.context.set_default_timeout(WAIT_MS)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, learner: str | None = None, state: str | None = "learning|idle") -> Any:
        """The page, when the state of its badge is one of these."""
        self.page.goto(self.url + ("/" if learner is None else f"/#learner={learner}"))
        if state is not None:
            self.wait_for_state(state)
        return self.page

    def wait_for_state(self, state: str) -> None:
        self.page.wait_for_function(
            "states => states.includes(document.getElementById('state-text').textContent)",
            arg=state.split("|"),
        )

    def said(self, selector: str) -> str:
        return str(self.page.locator(selector).inner_text())

    def check(self, *, refused: tuple[int, ...] = ()) -> None:
        """No complaints but about answers with these statuses, and nobody else was asked."""
        answered = "error: Failed to load resource: the server responded with a status of"
        expected = tuple(f"{answered} {status}" for status in refused)
        assert [one for one in self.complaints if not one.startswith(expected)] == []
        elsewhere = [
            one for one in self.asked if not one.startswith((self.url, "blob:" + self.url))
        ]
        assert elsewhere == []

    def close(self) -> None:
        self.context.close()
