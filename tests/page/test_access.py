"""For everybody: keyboard, screen readers, phones, both themes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.api.running import Service
from tests.page.browser import Tab

THEMES = ("light", "dark")

# Texts whose contrast to the first opaque ground behind them is below 4.5 (3 where they are large).
LOW_CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const colour = rgb(getComputedStyle(node).backgroundColor);
      if (colour[3] > 230) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim()) continue;
    if (!node.checkVisibility({ visibilityProperty: true })) continue;
    if (node.closest("[disabled], .unseen, option, .skip")) continue;
    const style = getComputedStyle(node);
    const ink = rgb(node instanceof SVGElement ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5)) {
      found.push(`${ratio.toFixed(2)} ${node.tagName}.${node.className} ${node.textContent}`);
    }
  }
  return found;
}"""


def everything_shown(tab: Tab, state: str = "learning") -> None:
    """The page with a decision opened and a dry run answered."""
    page = tab.open("ads", state)
    page.wait_for_selector("#heat svg rect[style]")
    page.locator("#decisions tbody button").first.click()
    page.wait_for_selector("#opened .arms")
    page.get_by_role("button", name="Choose (dry run)").click()
    page.wait_for_selector("#try .arms")


@pytest.mark.parametrize("theme", THEMES)
def test_text_stands_out_in_both_themes(new_tab: Callable[..., Tab], busy: Service, theme: str):
    tab = new_tab(busy.url, color_scheme=theme)
    everything_shown(tab)
    assert tab.page.evaluate(LOW_CONTRAST) == []
    scheme = tab.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (scheme == "rgb(13, 16, 21)") == (theme == "dark")
    tab.check()


def test_a_scan_with_axe_finds_nothing(tab: Tab):
    package = importlib.util.find_spec("axe_playwright_python")
    if package is None or package.origin is None:
        pytest.skip("axe-playwright-python is not installed")
    script = Path(package.origin).with_name("axe.min.js").read_text(encoding="utf-8")
    everything_shown(tab)
    tab.page.evaluate(script)
    for part in ("body", "dialog"):
        # The cells of the heat map are hidden from readers, and many.
        scan = (
            f"axe.run({{include: ['{part}'], exclude: ['svg']}}, {{resultTypes: ['violations']}})"
        )
        found = tab.page.evaluate(scan)["violations"]
        assert [(one["id"], [at["html"] for at in one["nodes"]]) for one in found] == []
        if part == "body":
            tab.page.get_by_role("button", name="Delete").click()


def test_the_theme_is_the_readers_choice_and_is_kept(tab: Tab):
    page = tab.open("ads")
    button = page.locator("#theme")
    assert button.get_attribute("aria-label") == "Theme: auto"
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    button.click()
    assert page.evaluate(ground) == light
    button.click()
    assert button.get_attribute("aria-label") == "Theme: dark"
    assert page.evaluate(ground) != light
    page.reload()
    assert page.locator("#theme").get_attribute("aria-label") == "Theme: dark"
    assert page.evaluate(ground) != light
    tab.check()


@pytest.mark.parametrize("width", [360, 768])
def test_nothing_sticks_out_on_a_small_screen(
    new_tab: Callable[..., Tab], busy: Service, width: int
):
    tab = new_tab(busy.url, viewport={"width": width, "height": 740}, has_touch=True)
    everything_shown(tab)
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert tab.page.evaluate(over) == 0
    tab.page.get_by_role("button", name="New").click()
    assert tab.page.evaluate(over) == 0
    box = tab.page.locator("dialog").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    tab.check()


def test_the_keyboard_alone_goes_from_the_picker_to_a_decision_and_back(tab: Tab):
    page = tab.open("ads", "learning")
    page.wait_for_selector("#decisions tbody tr:nth-child(3)")
    focused = "() => document.activeElement.id || document.activeElement.className"

    def tab_to(goal: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate(focused) == goal:
                return
        raise AssertionError(f"{goal} is not reached")

    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "skip"
    tab_to("picker")
    page.keyboard.press("a")  # a native control: the first that begins so
    assert page.locator("#picker").input_value() == "ads"
    tab_to("row-button")
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowDown")
    label = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label != first
    page.keyboard.press("Enter")
    page.wait_for_selector("#opened .arms")
    assert page.evaluate("document.activeElement.closest('#opened') !== null")
    assert page.locator(".row-button[aria-expanded=true]").get_attribute("aria-label") == label
    page.keyboard.press("Escape")
    assert page.locator("#opened .arms").count() == 0
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == label
    tab.check()


def test_it_has_landmarks_headings_and_a_name_for_every_control(tab: Tab):
    everything_shown(tab)
    page = tab.page
    for role in ("banner", "main", "contentinfo"):
        assert page.get_by_role(role).count() == 1
    assert page.get_by_role("heading", level=1).count() == 1
    for title in ("Reward over time", "Decisions", "Try it"):
        assert page.get_by_role("heading", name=title, level=2).count() == 1
    tree = page.locator("body").aria_snapshot()
    nameless = [
        line for line in tree.splitlines()
        if line.strip().removeprefix("- ").rstrip(":") in ("button", "textbox", "combobox", "img")
    ]  # fmt: skip
    assert nameless == []
    tab.check()
