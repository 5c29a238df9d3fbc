"""What is drawn, measured; and what numbers are made of before they are drawn."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.api.running import Service
from tests.page.browser import Tab

WIDTHS = (320, 360, 390, 430, 901, 960, 1024, 1280)
TIMELINE = "**/learners/ads/timeline"
NOTHING_COMPLETED = "This policy completes nothing: a missing feature counts as 0."

# How far the middle of each name is from the middle of its row, in pixels.
OFFSETS = """() => {
  const names = [...document.querySelectorAll("#heat .heat-labels > *")];
  const { top, height } = document.querySelector("#heat svg").getBoundingClientRect();
  return names.map((name, k) => {
    const box = name.getBoundingClientRect();
    return box.top + box.height / 2 - (top + ((k + 0.5) * height) / names.length);
  });
}"""
DRAWINGS = """drawings => drawings.map((drawing) => {
  const { left, width } = drawing.getBoundingClientRect();
  return [left, width];
})"""


@pytest.fixture
def make(http: httpx.Client) -> Iterator[Callable[..., str]]:
    """A learner with so many features, of which it has seen a few."""
    made: list[str] = []

    def one(name: str, dimension: int, **config: Any) -> str:
        features = [f"quite_a_long_name_{j}" for j in range(dimension)]
        answer = http.put(f"/learners/{name}", json={"features": features, **config})
        assert answer.status_code == 201, answer.text
        made.append(name)
        for k in range(4):
            arms = [
                {"features": [((k + a) * (j + 3)) % 7 / 7 or None for j in range(dimension)]}
                for a in range(5)
            ]
            body = {"learner": name, "event_id": f"{name}-{k}", "arms": arms, "explain": True}
            assert http.post("/select", json=body).status_code == 200
            reward = {"learner": name, "event_id": f"{name}-{k}", "reward": 1234.5 * (-1) ** k}
            assert http.post("/reward", json=reward).status_code == 200
        return name

    yield one
    for name in made:
        http.delete(f"/learners/{name}")


def points(rewards: list[tuple[int, float]], interval_s: int = 5) -> dict[str, Any]:
    """A timeline that ends now: so many rewards of 0 or 1 in each interval, and their mean."""
    last = int(time.time() // interval_s)
    return {
        "interval_s": interval_s,
        "points": [
            {
                "at": (last - len(rewards) + k) * interval_s,
                "selects": n,
                "rewards": n,
                "sum": n * mean,
                "sum_squares": n * mean,
            }
            for k, (n, mean) in enumerate(rewards)
        ],
    }


def evaluated(tab: Tab, module: str, expression: str) -> Any:
    return tab.page.evaluate(f"async () => {{ const m = await import('{module}'); {expression} }}")


def test_a_burst_hides_nothing_of_what_was_before(tab: Tab):
    answer = points([(10, 0.3)] * 30 + [(900, 0.9)] + [(10, 0.3)] * 9)
    tab.page.route(TIMELINE, lambda route: route.fulfill(json=answer))
    page = tab.open("ads", "learning")
    page.wait_for_selector("#reward-chart .line-mean[d]")
    drawn = page.locator("#reward-chart .line-mean").get_attribute("d")
    heights = [float(step.split()[1]) for step in drawn.replace("h0", "").strip("M").split("L")]
    assert len(heights) >= len(answer["points"]) - 3  # the first are of too few rewards
    box = page.locator("#reward-chart .frame").bounding_box()
    assert all(0 < height < box["height"] - 22 for height in heights)
    lines = page.locator("#reward-chart .grid line").count()
    assert page.locator("#reward-chart .tick-y").count() == lines  # each level has its label


def test_an_interval_that_may_not_be_in_the_answer_yet_is_not_drawn(tab: Tab):
    tab.open("ads", "learning")
    over = "return [m.isOver(100, 100.9), m.isOver(100, 101)];"
    assert evaluated(tab, "./page/series.js", over) == [False, True]
    rates = "return m.ratesOf([{at: 95, selects: 5, rewards: 5}], 5, 100.5).length;"
    assert evaluated(tab, "./page/series.js", rates) == 0


def test_equal_rewards_have_no_band_and_a_sane_axis(tab: Tab):
    tab.open("ads", "learning")
    sums = "rewards: 70000, sum: 70000 * 0.1 + 1e-9, sum_squares: 70000 * 0.01 + 3e-9"
    found = evaluated(tab, "./page/series.js", f"return m.meanOf({{{sums}}});")
    assert found["low"] == found["mean"] == found["high"]
    for low, high in ((7.0, 7.0 + 1e-12), (-3.0, -3.0), (0.0, 0.0)):
        levels = evaluated(tab, "./page/series.js", f"return m.roundLevels({low}, {high});")
        assert len(levels) >= 3
        assert levels[-1] - levels[0] >= max(1.0, abs(low)) * 0.9


def test_rates_begin_anew_after_a_pause(tab: Tab):
    tab.open("ads", "learning")
    script = """
      const rates = new m.Rates();
      rates.add(0, 0, 0);
      return [rates.add(1000, 10, 10), rates.add(61000, 20, 20), rates.add(62000, 30, 30)];
    """
    before, just_back, after = evaluated(tab, "./page/series.js", script)
    assert (before["selects"], just_back["selects"], after["selects"]) == (10, None, 10)


def test_numbers_are_grouped_have_one_minus_and_are_told_apart(tab: Tab):
    tab.open("ads", "learning")
    script = """
      const column = m.column([0.12345, 0.12346, -0.5]);
      return [
        ...[1234.5, -8.9e-7, 999.5].map((value) => m.number(value)),
        ...[column(0.12345), column(0.12346), m.column([0, 0])(0), m.many(1, "feature")],
      ];
    """
    assert evaluated(tab, "./page/format.js", script) == [
        *("1,235", "−8.9e−7", "999.5"),
        *("0.12345", "0.12346", "0.000", "1 feature"),
    ]


@pytest.mark.parametrize("dimension", [2, 12, 16])
def test_names_stand_beside_their_rows_at_any_width(
    tab: Tab, make: Callable[..., str], dimension: int
):
    page = tab.open(make(f"named-{dimension}", dimension))
    page.wait_for_selector("#heat svg rect[style]")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        offsets = page.evaluate(OFFSETS)
        assert len(offsets) == dimension
        assert max(abs(offset) for offset in offsets) < 2, (width, offsets)
    frame = page.locator("#heat .heat-frame").bounding_box()
    assert frame["width"] / dimension <= 65
    tab.check()


@pytest.mark.parametrize("width", [390, 901, 1280])
def test_weights_are_drawn_on_one_scale(
    new_tab: Callable[..., Tab], busy: Service, make: Callable[..., str], width: int
):
    tab = new_tab(busy.url, viewport={"width": width, "height": 900})
    page = tab.open(make("weighed", 5))
    page.wait_for_selector("#features .estimate[x1]", state="attached")
    drawings = page.locator("#features tbody svg").evaluate_all(DRAWINGS)
    assert len(drawings) == 6
    for drawing in drawings:
        assert drawing == pytest.approx(drawings[0], abs=0.1)
    assert drawings[0][1] > 40
    tab.check()


def test_one_feature_has_nothing_to_correlate_with(tab: Tab, make: Callable[..., str]):
    page = tab.open(make("lonely", 1))
    page.wait_for_selector("#heat:has-text('One feature: nothing to correlate with.')")
    assert "1\u00a0feature\u00a0·" in page.locator("#about").text_content().replace(" ", "\u00a0")
    tab.check()


@pytest.mark.parametrize("policy", ["oful", "random"])
def test_a_policy_that_completes_nothing_says_so(tab: Tab, make: Callable[..., str], policy: str):
    page = tab.open(make(policy, 3, policy=policy))
    page.wait_for_selector(f"#heat:has-text('{NOTHING_COMPLETED}')")
    page.locator("#decisions tbody button").first.click()
    page.wait_for_selector(f"#opened .legend:has-text('{NOTHING_COMPLETED}')")
    page.get_by_role("button", name="Choose (dry run)").click()
    page.wait_for_selector(f"#try .legend:has-text('{NOTHING_COMPLETED}')")
    at_random = page.locator("#try p:has-text('Drawn at random, with probability 0.33.')")
    assert at_random.is_visible() == (policy == "random")
    assert "completed from" not in page.locator("main").inner_text()
    tab.check()


def test_a_choice_against_the_scores_was_drawn_at_random(tab: Tab):
    def at_random(route: Any) -> None:
        answer = route.fetch().json()
        scores = [arm["score"] for arm in answer["arms"]]
        index = scores.index(min(scores))
        told = {"index": index, "arm": answer["arms"][index]["id"], "probability": 0.2}
        route.fulfill(json=answer | told)

    page = tab.open("ads", "learning")
    page.get_by_role("button", name="Choose (dry run)").click()
    page.wait_for_selector("#try .arms")
    assert page.locator("#try p:has-text('Drawn at random')").is_hidden()
    page.route("**/select", at_random)
    page.get_by_role("button", name="Choose (dry run)").click()
    page.wait_for_selector("#try p:has-text('Drawn at random, with probability 0.20.')")
    tab.check()


def test_the_bonus_of_thompson_is_drawn(tab: Tab, make: Callable[..., str]):
    page = tab.open(make("drawing", 3, policy="thompson"))
    page.get_by_role("button", name="Choose (dry run)").click()
    page.wait_for_selector("#try .legend:has-text('drawn from the uncertainty')")
    tab.check()


def test_decisions_are_listed_by_their_rounds(tab: Tab, http: httpx.Client):
    latest = http.get("/learners/ads/decisions?limit=20&explained=true").json()
    latest["decisions"].reverse()
    tab.page.route("**/decisions?*", lambda route: route.fulfill(body=json.dumps(latest)))
    page = tab.open("ads", "learning")
    page.wait_for_selector("#decisions tbody button")
    shown = [
        int(text.replace(",", ""))
        for text in page.locator("#decisions tbody button").all_inner_texts()
    ]
    assert shown == sorted(shown, reverse=True)
    assert len(shown) > 1
    tab.check()


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_figures_keep_their_place_before_they_are_there(
    new_tab: Callable[..., Tab], busy: Service, width: int
):
    heights = []
    for with_script in (False, True):
        tab = new_tab(busy.url, viewport={"width": width, "height": 900})
        if with_script:
            tab.open("ads", "learning")
        else:
            tab.page.route("**/app.js", lambda route: route.fulfill(body=""))
            tab.open(state=None)
        heights.append(tab.page.locator("#figures").bounding_box()["height"])
    assert heights[0] == pytest.approx(heights[1], abs=1)
