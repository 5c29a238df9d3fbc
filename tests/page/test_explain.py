"""One decision opened, and the dry run: both are what the API says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.page.browser import Tab

HOSTILE_ARM = '<img src=x onerror="window.harmed=1">'
HOSTILE_FEATURE = "<script>window.harmed=2</script>"
ARMS: list[dict[str, Any]] = [
    {"id": HOSTILE_ARM, "features": [0.9, None, 0.3]},
    {"id": "plain", "features": [-1.4, 0.2, None]},
    {"id": "'; DROP \u202etxet", "features": [None, -0.6, 0.1]},
]

# Where the bar of the mean begins and ends, where zero and the score are, how long the bonus is.
BARS = """drawings => drawings.map((drawing) => {
  const of = (part, name) => Number(drawing.querySelector(part).getAttribute(name));
  const [from, width] = [of(".worth", "x"), of(".worth", "width")];
  const [zero, end] = [of(".zero", "x1"), of(".end", "x1")];
  return { from, to: from + width, zero, end, bonus: of(".extra", "width") };
})"""


@pytest.fixture
def shop(http: httpx.Client) -> Iterator[str]:
    """A learner that knows something, with a name among its features that means harm."""
    config = {"features": ["age", HOSTILE_FEATURE, "price"], "seed": 7}
    assert http.put("/learners/shop", json=config).status_code == 201
    for k in range(40):
        event = f"before/{k} & more"
        http.post("/select", json={"learner": "shop", "event_id": event, "arms": ARMS})
        reward = {"learner": "shop", "event_id": event, "reward": (-1.0) ** k / 2}
        assert http.post("/reward", json=reward).status_code == 200
    yield "shop"
    http.delete("/learners/shop")


def worths(tab: Tab, root: str) -> dict[str, list[float]]:
    """Mean, bonus and score of each arm as the page shows them."""
    found = {}
    for row in tab.page.locator(f"{root} .arms tbody tr").all():
        cells = [cell.inner_text().replace("−", "-") for cell in row.locator("td.num").all()]
        found[row.locator("th .named").inner_text()] = [float(cell) for cell in cells]
    return found


def filled(tab: Tab, root: str) -> dict[str, list[bool]]:
    """Which features of each arm are marked as completed, by more than their colour."""
    found = {}
    for row in tab.page.locator(f"{root} .completed tbody tr").all():
        cells = row.locator("td").all_inner_texts()
        found[row.locator("th").inner_text()] = ["≈" in cell for cell in cells]
    return found


def assert_shown(tab: Tab, root: str, answer: dict[str, Any]) -> None:
    shown = worths(tab, root)
    assert list(shown) == [
        arm["id"] for arm in sorted(answer["arms"], key=lambda arm: -arm["score"])
    ]
    for arm in answer["arms"]:
        expected = [arm["mean"], arm["bonus"], arm["score"]]
        assert shown[arm["id"]] == pytest.approx(expected, abs=6e-4)
    ranked = sorted(answer["arms"], key=lambda arm: -arm["score"])
    bars = tab.page.locator(f"{root} .arms tbody svg").evaluate_all(BARS)
    zero, end, score = max(
        ((bar["zero"], bar["end"], arm["score"]) for bar, arm in zip(bars, ranked, strict=True)),
        key=lambda row: abs(row[2]),
    )
    scale = (end - zero) / score
    for bar, arm in zip(bars, ranked, strict=True):
        drawn = [bar["from"], bar["to"], bar["zero"], bar["bonus"]]
        low, high = sorted((0.0, arm["mean"]))
        expected = [zero + low * scale, zero + high * scale, zero, arm["bonus"] * scale]
        assert drawn == pytest.approx(expected, abs=0.01)
    chosen = tab.page.locator(f"{root} .arms tr:has(.mark:visible) .named")
    assert chosen.all_inner_texts() == [answer["arm"]]
    holes = {arm["id"]: [not seen for seen in arm["observed"]] for arm in answer["arms"]}
    assert filled(tab, root) == holes
    completed = answer["arms"][0]["features"]
    row = tab.page.locator(f"{root} .completed tbody tr", has_text=answer["arms"][0]["id"])
    texts = [text.split()[-1].replace("−", "-") for text in row.locator("td").all_inner_texts()]
    assert [float(text) for text in texts] == pytest.approx(completed, abs=6e-3)


def test_an_opened_decision_is_what_the_api_answered_and_its_reward_comes_in(
    tab: Tab, http: httpx.Client, shop: str
):
    page = tab.open(shop)
    body = {"learner": shop, "event_id": "looked/at", "arms": ARMS, "explain": True}
    answer = http.post("/select", json=body).json()
    page.get_by_role("button", name=f"Round {answer['round']}, arm").click()
    page.wait_for_selector("#opened .arms")
    assert_shown(tab, "#opened", answer)
    kept = http.get(f"/learners/{shop}/decisions/looked%2Fat").json()
    assert [arm["score"] for arm in kept["arms"]] == pytest.approx(
        [arm["score"] for arm in answer["arms"]]
    )
    reward = page.locator("#opened .facts dd").first
    assert reward.inner_text() == "pending"
    http.post("/reward", json={"learner": shop, "event_id": "looked/at", "reward": 0.75})
    page.wait_for_function(
        "() => document.querySelector('#opened .facts dd').textContent === '0.75'"
    )
    page.get_by_role("button", name="Close").click()
    assert page.locator("#opened .arms").count() == 0
    tab.check()


def test_hostile_names_stay_text_wherever_they_are_shown(tab: Tab, http: httpx.Client, shop: str):
    page = tab.open(shop)
    page.locator("#decisions tbody button").first.click()
    page.wait_for_selector("#opened .arms")
    assert HOSTILE_ARM in page.locator("#opened .arms .named").all_inner_texts()
    assert HOSTILE_FEATURE in page.locator("#opened .completed thead .named").all_inner_texts()
    assert HOSTILE_FEATURE in page.locator("#features .named").all_inner_texts()
    page.locator("#heat .heat-frame").focus()
    page.keyboard.press("ArrowRight")
    assert HOSTILE_FEATURE in tab.said("#heat .heat-said")
    page.get_by_text("As JSON").click()
    page.get_by_label("Arms as JSON").fill('[{"id": "<b>x</b>", "features": [1, null, 2]}]')
    page.get_by_role("button", name="Choose (dry run)").click()
    page.wait_for_selector("#try .said")
    assert "<b>x</b>" in tab.said("#try .said")
    assert page.locator("main img, main script, main b").count() == 0
    assert page.evaluate("window.harmed") is None
    tab.check()


def test_a_dry_run_shows_the_choice_and_changes_nothing(tab: Tab, http: httpx.Client, shop: str):
    before = http.get(f"/learners/{shop}").json()
    page = tab.open(shop)
    page.get_by_text("As JSON").click()
    page.get_by_label("Arms as JSON").fill(
        '{"arms": [{"id": "a", "features": {"age": 0.5, "price": -1}},'
        ' {"id": "b", "features": [0.1, 0.2, 9], "mask": [1, 1, 0]}]}'
    )
    fields = page.locator("#try tbody input")
    assert [one.input_value() for one in fields.all()] == [
        *("a", "0.5", "", "-1"),
        *("b", "0.1", "0.2", ""),
    ]
    fields.nth(6).fill("")  # now a hole
    with page.expect_response("**/select") as answered:
        page.get_by_role("button", name="Choose (dry run)").click()
    arms = [
        {"id": "a", "features": [0.5, None, -1]},
        {"id": "b", "features": [0.1, None, None]},
    ]
    sent = {"learner": shop, "arms": arms, "dry_run": True}
    assert answered.value.request.post_data_json == sent
    page.wait_for_selector("#try .arms")
    assert_shown(tab, "#try", answered.value.json())
    fields.nth(1).fill("much")
    page.get_by_role("button", name="Choose (dry run)").click()
    page.wait_for_selector("#try .error:has-text('a, age: not a number.')")
    assert page.locator("#try [aria-invalid=true]").input_value() == "much"
    assert page.locator("#try .arms").count() == 0  # the answer was to something else
    fields.nth(1).fill("1,5")
    assert page.locator("#try [aria-invalid]").count() == 0
    page.get_by_role("button", name="Choose (dry run)").click()
    page.wait_for_selector("#try .error:has-text('a, age: not a number.')")
    page.get_by_label("Arms as JSON").fill("[null]")
    page.wait_for_selector("#try .error:has-text('A list of arms is wanted')")
    after = http.get(f"/learners/{shop}").json()
    for name in ("rounds", "arms", "pending", "rewards"):
        assert after[name] == before[name]
    tab.check()


def test_a_new_arm_has_a_name_that_is_free(tab: Tab):
    page = tab.open("ads", "learning")
    page.get_by_role("button", name="Remove arm 1").click()
    for _ in range(2):
        page.get_by_role("button", name="Add an arm").click()
    names = [one.input_value() for one in page.locator("#try tbody th input").all()]
    assert names == ["arm-2", "arm-3", "arm-1", "arm-4"]
    tab.check()
