"""A service that asks for a key and has no learner yet: from its first page to its last."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.api.running import Service
from tests.page.browser import Tab
from tests.page.conftest import KEY

ARMS = [{"id": "a", "features": [0.2, None]}, {"id": "b", "features": [0.1, 0.7]}]


@pytest.fixture
def api(guarded: Service) -> Iterator[httpx.Client]:
    with guarded.client(headers={"x-api-key": KEY}) as client:
        yield client
        for learner in client.get("/learners").json()["learners"]:
            client.delete(f"/learners/{learner['name']}")


@pytest.fixture
def locked(new_tab: Callable[..., Tab], guarded: Service) -> Tab:
    return new_tab(guarded.url, accept_downloads=True)


@pytest.fixture
def unlocked(locked: Tab) -> Tab:
    """A tab whose session has the key."""
    locked.open(state="no key")
    enter(locked, KEY)
    locked.page.wait_for_function("() => !document.querySelector('dialog')")
    return locked


def enter(tab: Tab, key: str) -> None:
    dialog = tab.page.get_by_role("dialog", name="API key")
    dialog.get_by_label("Key").fill(key)
    dialog.get_by_role("button", name="Use it").click()


def test_a_key_is_asked_for_kept_in_the_session_only_and_forgotten(locked: Tab, api: httpx.Client):
    api.put("/learners/well-kept", json={"dimension": 2})
    page = locked.open(state="no key")
    assert page.locator("#learner").is_hidden()
    page.get_by_role("dialog", name="API key").get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Enter key").click()
    enter(locked, "ключ")
    page.wait_for_selector("dialog .error:has-text('A key has no such characters.')")
    enter(locked, "not this one")
    page.wait_for_selector("dialog:has-text('does not know this key')")
    enter(locked, KEY)
    locked.wait_for_state("idle")
    assert locked.said("#name") == "well-kept"
    kept = page.evaluate("[Object.values(sessionStorage), Object.values(localStorage)]")
    assert kept == [[KEY], []]
    assert page.context.cookies() == []
    assert KEY not in page.url
    page.reload()  # the session still has it
    locked.wait_for_state("idle")
    page.get_by_role("button", name="Forget key").click()
    locked.wait_for_state("no key")
    assert page.evaluate("sessionStorage.length") == 0
    assert "well-kept" not in page.locator("body").inner_text()
    assert page.get_by_role("button", name="Forget key").is_hidden()
    locked.check(refused=(401,))


def test_without_learners_the_page_says_how_to_begin_and_follows(unlocked: Tab, api: httpx.Client):
    page = unlocked.page
    unlocked.wait_for_state("no learner")
    assert page.locator("#learner").is_hidden()
    told = unlocked.said("#empty-curls")
    assert f"{unlocked.url}/select -d" in told
    assert f"{unlocked.url}/reward -d" in told
    assert KEY not in told
    api.post("/select", json={"event_id": "first", "arms": ARMS})
    page.wait_for_function("() => document.getElementById('name').textContent === 'default'")
    assert page.locator("#empty").is_hidden()
    api.delete("/learners/default")
    unlocked.wait_for_state("no learner")
    assert page.locator("#empty").is_visible()
    unlocked.check(refused=(401, 404))


def test_a_learner_is_created_exported_reset_and_deleted(unlocked: Tab, api: httpx.Client):
    page = unlocked.page
    unlocked.wait_for_state("no learner")
    page.get_by_role("button", name="New learner").click()
    dialog = page.get_by_role("dialog", name="New learner")
    create = dialog.get_by_role("button", name="Create")
    assert create.is_disabled()
    dialog.get_by_label("Name", exact=False).first.fill("Not A Name")
    dialog.get_by_label("Feature names").fill("age, price\n<b>odd</b>")
    dialog.get_by_label("Policy").select_option("thompson")
    dialog.get_by_label("Wait for a reward").fill("600")
    dialog.get_by_label("Then book this reward").fill("0")
    create.click()
    page.wait_for_selector("dialog .error:has-text('it begins with a letter or digit.')")
    dialog.get_by_label("Name", exact=False).first.fill("ads")
    dialog.get_by_label("Then book this reward").fill("")
    create.click()
    page.wait_for_selector("dialog .error:has-text('give both, or neither.')")
    dialog.get_by_label("Then book this reward").fill("0")
    create.click()
    page.wait_for_function("() => document.getElementById('name').textContent === 'ads'")
    made = api.get("/learners/ads").json()
    assert made["features"] == ["age", "price", "<b>odd</b>"]
    assert (made["policy"], made["reward_wait_s"], made["default_reward"]) == ("thompson", 600, 0)
    unlocked.wait_for_state("idle")

    api.post("/select", json={"learner": "ads", "arms": [{"features": [1, None, 2]}]})
    page.get_by_role("button", name="Export").click()
    dialog = page.get_by_role("dialog", name="Export ads?")
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "ads.lacuna"
    blob = download.value.path().read_bytes()
    copied = api.put("/learners/copy/import", content=blob)
    assert copied.status_code == 200, copied.text
    assert api.get("/learners/copy").json()["rounds"] == 1
    api.delete("/learners/copy")

    for action, word in (("Reset", "Reset"), ("Delete", "Delete")):
        page.get_by_role("button", name=action, exact=True).click()
        dialog = page.get_by_role("dialog", name=f"{action} ads?")
        go = dialog.get_by_role("button", name=word)
        assert go.is_disabled()
        dialog.get_by_label("Type ads to go on").fill("adz")
        assert go.is_disabled()
        page.keyboard.press("Escape")
        page.wait_for_function("() => !document.querySelector('dialog')")
        assert api.get("/learners/ads").json()["rounds"] == (1 if action == "Reset" else 0)
        page.get_by_role("button", name=action, exact=True).click()
        page.get_by_label("Type ads to go on").fill("ads")
        page.get_by_role("dialog").get_by_role("button", name=word).click()
        page.wait_for_function("() => !document.querySelector('dialog')")
        if action == "Reset":
            assert api.get("/learners/ads").json()["rounds"] == 0
            unlocked.wait_for_state("idle")
    assert api.get("/learners/ads").status_code == 404
    unlocked.wait_for_state("no learner")
    unlocked.check(refused=(401, 404))


def test_create_does_not_reconfigure_a_learner_that_is_there(locked: Tab, api: httpx.Client):
    api.put("/learners/there", json={"dimension": 2, "epsilon": 0.25})
    page = locked.open(state="no key")
    enter(locked, KEY)
    locked.wait_for_state("idle")
    page.get_by_role("button", name="New").click()
    dialog = page.get_by_role("dialog", name="New learner")
    dialog.get_by_label("Name", exact=False).first.fill("there")
    dialog.get_by_label("Dimension").fill("2")
    dialog.get_by_role("button", name="Create").click()
    page.wait_for_selector("dialog .error:has-text('There is a learner there already')")
    assert api.get("/learners/there").json()["epsilon"] == 0.25
    locked.check(refused=(401,))


def test_a_dialog_holds_the_longest_name(locked: Tab, api: httpx.Client):
    longest = "w" * 63
    api.put(f"/learners/{longest}", json={"dimension": 2})
    page = locked.page
    page.set_viewport_size({"width": 390, "height": 800})
    locked.open(state="no key")
    enter(locked, KEY)
    locked.wait_for_state("idle")
    page.get_by_role("button", name="Delete").click()
    over = "dialog => dialog.scrollWidth - dialog.clientWidth"
    assert page.locator("dialog").evaluate(over) == 0
    locked.check(refused=(401,))
