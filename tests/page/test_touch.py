"""A finger: it does not hover, and leaves the screen after every tap."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.api.running import Service
from tests.page.browser import Tab


@pytest.fixture
def phone(new_tab: Callable[..., Tab], busy: Service) -> Tab:
    size = {"width": 390, "height": 844}
    return new_tab(busy.url, viewport=size, has_touch=True, is_mobile=True)


def tap(tab: Tab, selector: str, across: float, down: float) -> None:
    part = tab.page.locator(selector)
    part.scroll_into_view_if_needed()
    box = part.bounding_box()
    x, y = box["x"] + across * box["width"], box["y"] + down * box["height"]
    tab.page.touchscreen.tap(x, y)


def test_a_tap_names_the_pair_that_is_tapped(phone: Tab):
    page = phone.open("ads", "learning")
    page.wait_for_selector("#heat svg rect[style]")
    assert phone.said("#heat .heat-said") == "Tap a pair."
    tap(phone, "#heat .heat-frame", 0.5, 0.7)
    page.wait_for_timeout(300)  # what follows a tap must not take it back
    assert phone.said("#heat .heat-said").startswith("quality and price: ")
    tap(phone, "#heat .heat-frame", 0.1, 0.3)
    page.wait_for_timeout(300)
    assert phone.said("#heat .heat-said").startswith("past_clicks and taste: ")
    phone.check()


def test_a_tap_on_a_chart_tells_that_moment(phone: Tab):
    page = phone.open("ads", "learning")
    page.wait_for_selector("#rate-chart .line-selects[d]")
    tap(phone, "#reward-chart .frame", 0.9, 0.5)
    page.wait_for_timeout(300)
    assert "rewards" in phone.said("#reward-chart .tip")
    tap(phone, "#rate-chart .frame", 0.9, 0.5)
    page.wait_for_timeout(300)
    assert "selects/s" in phone.said("#rate-chart .tip")
    phone.check()
