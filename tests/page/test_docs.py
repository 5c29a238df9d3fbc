"""Every call, described and tried out; from this host alone."""

from __future__ import annotations

from collections.abc import Callable

import httpx

from tests.api.running import Service
from tests.page.browser import Tab
from tests.page.conftest import KEY


def try_select(tab: Tab) -> int:
    """The example of /select as it stands; the status of its answer."""
    page = tab.page
    call = page.locator(".opblock", has=page.get_by_text("/select", exact=True))
    call.locator(".opblock-summary-control").click()
    call.get_by_role("button", name="Try it out").click()
    with page.expect_response("**/select") as answered:
        call.get_by_role("button", name="Execute").click()
    return int(answered.value.status)


def test_every_call_is_shown_and_an_example_works_as_it_stands(tab: Tab, http: httpx.Client):
    tab.page.goto(f"{tab.url}/docs")
    tab.page.wait_for_selector(".opblock")
    paths = http.get("/openapi.json").json()["paths"]
    assert tab.page.locator(".opblock").count() == sum(len(calls) for calls in paths.values())
    assert try_select(tab) == 200
    assert http.delete("/learners/default").status_code == 204
    tab.check()


def test_it_wants_the_key_that_was_entered_on_the_page(
    new_tab: Callable[..., Tab], guarded: Service
):
    tab = new_tab(guarded.url)
    page = tab.page
    assert page.goto(f"{tab.url}/docs").status == 401
    page.get_by_role("link", name="Enter it on the page").click()
    page.get_by_label("Key", exact=True).fill(KEY)
    page.get_by_role("button", name="Use it").click()
    page.get_by_role("link", name="All calls").click()
    page.wait_for_selector(".opblock")
    assert try_select(tab) == 200
    with guarded.client(headers={"X-API-Key": KEY}) as http:
        assert http.delete("/learners/default").status_code == 204
    tab.check(refused=(401,))


def test_a_phone_shows_an_answer_without_sticking_out(new_tab: Callable[..., Tab], busy: Service):
    tab = new_tab(busy.url, viewport={"width": 360, "height": 740})
    tab.page.goto(f"{tab.url}/docs")
    tab.page.wait_for_selector(".opblock")
    assert tab.page.locator(".schemes-server-container").is_hidden()
    assert try_select(tab) == 200
    tab.page.wait_for_selector(".live-responses-table")
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert tab.page.evaluate(over) == 0
    with busy.client() as http:
        assert http.delete("/learners/default").status_code == 204
    tab.check()


def test_it_follows_the_theme(new_tab: Callable[..., Tab], busy: Service):
    tab = new_tab(busy.url, color_scheme="dark")
    page = tab.page
    page.goto(f"{tab.url}/docs")
    page.wait_for_selector(".opblock")
    is_dark = "document.documentElement.classList.contains('dark-mode')"
    assert page.evaluate(is_dark)
    page.locator("#theme").click()
    assert not page.evaluate(is_dark)
    tab.check()
