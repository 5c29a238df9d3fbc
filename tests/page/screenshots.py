"""The pictures of the page in docs/: `python -m tests.page.screenshots`.

Starts a service with the demo's market in front of it, lets it learn for a while, and looks at it.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.api.running import ROOT, Service, service
from tests.page.browser import chromium

LEARNER = "demo-lacuna"
DESKTOP = {"width": 1280, "height": 1400}
PHONE = {"width": 390, "height": 844}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240.0, help="of learning (default: 240)")
    parser.add_argument("--pages", default="12", help="of the demo per second (default: 12)")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures")
    args = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="lacuna-pictures-") as folder,
        service("--workers", "2", "--data-dir", folder) as running,
    ):
        market = subprocess.Popen(
            [
                *(sys.executable, "-m", "service.cli", "demo", "--url", running.url),
                *("--forever", "--quiet", "--pages", args.pages),
            ],
            stdout=subprocess.DEVNULL,
        )
        try:
            time.sleep(args.seconds)
            with chromium() as browser:
                for theme in ("light", "dark"):
                    look(browser, running, args.out / f"page-{theme}.png", theme, DESKTOP)
                look(
                    browser, running, args.out / "page-decision.png", "light", DESKTOP, opened=True
                )
                look(browser, running, args.out / "page-phone.png", "dark", PHONE, scale=2)
        finally:
            market.send_signal(signal.SIGTERM)
            market.wait()


def look(
    browser: Any,
    running: Service,
    path: Path,
    theme: str,
    size: dict[str, int],
    *,
    opened: bool = False,
    scale: int = 1,
) -> None:
    context = browser.new_context(viewport=size, color_scheme=theme, device_scale_factor=scale)
    page = context.new_page()
    page.goto(f"{running.url}/#learner={LEARNER}")
    page.wait_for_selector("#heat svg rect[style]")
    page.wait_for_timeout(4_000)  # rates need a few seconds to be known
    if opened:
        settled = "#decisions tr:has([data-status=rewarded], [data-status=defaulted]) button"
        page.locator(settled).first.click()
        page.wait_for_selector("#opened .arms")
        page.get_by_role("button", name="Choose (dry run)").click()
        page.wait_for_selector("#try .arms")
        page.mouse.move(0, 0)
        page.locator("#decisions-title").evaluate("title => scrollTo(0, title.offsetTop - 70)")
    page.screenshot(path=path)
    context.close()
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
