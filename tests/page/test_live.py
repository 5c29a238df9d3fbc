"""What moves by itself."""

from __future__ import annotations

import httpx

from tests.page.browser import Tab
from tests.servers import Server

# What each of these shows: an attribute, or the text where none is named.
PARTS = {
    "#figures .more": None,  # selects so far
    ".line-mean": "d",
    ".band-mean": "d",
    ".line-selects": "d",
    "#features .estimate": "x1",
    "#decisions tbody tr:first-child button": None,
}
SHOWN = """parts => Object.entries(parts).map(([selector, attribute]) => {
  const node = document.querySelector(selector);
  return attribute ? node?.getAttribute(attribute) : node?.textContent;
})"""
ALL_CHANGED = f"""([parts, before]) => {{
  const now = ({SHOWN})(parts);
  return now.every((value, k) => value && value !== before[k]);
}}"""


def wait_until_moved(tab: Tab, parts: dict[str, str | None]) -> None:
    """Twice: the first change may be a first drawing."""
    for _ in range(2):
        before = tab.page.evaluate(SHOWN, parts)
        tab.page.wait_for_function(ALL_CHANGED, arg=[parts, before])


def test_figures_charts_and_bars_move_with_the_traffic(tab: Tab):
    page = tab.open("ads", "learning")
    wait_until_moved(tab, PARTS)
    told = page.locator("#reward-chart .frame").get_attribute("aria-label")
    assert told.startswith("Mean reward over time. From 0.")
    tab.check()


def test_figures_are_those_of_the_api(tab: Tab, http: httpx.Client):
    before = http.get("/learners/ads").json()
    page = tab.open("ads", "learning")
    page.wait_for_function(
        "least => Number(document.querySelector('#figures .more').textContent"
        ".replace(/\\D/g, '')) >= least",
        arg=before["rounds"],
    )
    after = http.get("/learners/ads").json()
    cells = page.locator("#figures .figure").all_inner_texts()
    figures = {name: value for name, value, *_ in (cell.split("\n") for cell in cells)}
    assert (
        before["duplicates"] <= int(figures["Duplicates"].replace(",", "")) <= after["duplicates"]
    )
    assert before["duplicates"] > 0
    shares = [one["defaults"] / one["rewards"] * 100 for one in (before, after)]
    share = float(figures["Default share"].removesuffix(" %"))
    assert min(shares) - 1 <= share <= max(shares) + 1
    assert abs(float(figures["Mean reward"]) - after["mean_reward"]) < 0.1
    rows = page.locator("#features tbody tr").all_inner_texts()
    assert [row.split()[0] for row in rows] == ["constant", *before["features"]]
    observed = [round(100 * share) for share in after["observed_rate"]]
    for row, expected in zip(rows[1:], observed, strict=True):
        assert abs(int(row.split()[1]) - expected) <= 2
    tab.check()


def test_the_heat_map_tells_pairs_to_pointer_and_keys(tab: Tab, http: httpx.Client):
    page = tab.open("ads", "learning")
    frame = page.locator("#heat .heat-frame")
    frame.focus()
    page.keyboard.press("ArrowRight")
    told = tab.said("#heat .heat-said")
    assert told.startswith("taste and past_clicks: 0.")
    sigma = http.get("/learners/ads/model").json()["sigma"]
    expected = sigma[0][1] / (sigma[0][0] * sigma[1][1]) ** 0.5
    assert abs(float(told.rpartition(" ")[2]) - expected) < 0.1
    box = frame.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.7)
    assert tab.said("#heat .heat-said").startswith("quality and price: ")
    assert page.locator("#heat svg g rect").count() == 25
    tab.check()


def test_a_chart_tells_a_moment_to_pointer_and_keys(tab: Tab):
    page = tab.open("ads", "learning")
    page.wait_for_selector("#rate-chart .line-selects[d]")
    page.locator("#reward-chart .frame").hover()
    assert "rewards" in tab.said("#reward-chart .tip")
    page.locator("#rate-chart .frame").focus()
    page.keyboard.press("ArrowLeft")
    assert "selects/s" in tab.said("#rate-chart .tip")
    page.get_by_text("As a table").click()
    assert page.locator("#time-table tbody tr").count() > 0
    tab.check()


def test_degraded_shows_while_the_store_is_away_and_clears_when_it_is_back(tab: Tab, store: Server):
    page = tab.open("ads", "learning")
    store.stop()
    try:
        tab.wait_for_state("degraded")
        assert page.locator("#notice").is_visible()
        assert "The store is away" in tab.said("#notice")
        assert page.locator("#figures").is_visible()  # what was known stays
        page.get_by_role("button", name="Choose (dry run)").click()
        page.wait_for_selector("#try .said:has-text('the store is away')")
    finally:
        store.start()
    tab.wait_for_state("learning")
    assert page.locator("#notice").is_hidden()
    wait_until_moved(tab, {"#figures .more": None})
    tab.check(refused=(503,))


def test_a_page_opened_while_the_store_is_away_says_so_and_fills_later(tab: Tab, store: Server):
    store.stop()
    try:
        page = tab.open("ads", "degraded")
        assert page.locator("#learner").is_hidden()
    finally:
        store.start()
    tab.wait_for_state("learning")
    assert tab.said("#name") == "ads"
    tab.check(refused=(503,))


def test_a_learner_can_be_linked_to_and_picked(tab: Tab, http: httpx.Client):
    http.put("/learners/linked", json={"dimension": 2})
    page = tab.open("linked")
    assert tab.said("#name") == "linked"
    assert page.locator("#picker").input_value() == "linked"
    page.locator("#picker").select_option("ads")
    tab.wait_for_state("learning")
    assert page.url.endswith("#learner=ads")
    page.evaluate("location.hash = 'learner=linked'")
    page.wait_for_function("() => document.getElementById('name').textContent === 'linked'")
    http.delete("/learners/linked")
    page.wait_for_function("() => document.getElementById('name').textContent === 'ads'")
    page.wait_for_selector("#notice:has-text('There is no learner linked. This is ads.')")
    page.wait_for_timeout(1_500)  # the figures that come do not take it away
    assert page.locator("#notice").is_visible()
    assert page.locator("#learner").is_visible()
    tab.check(refused=(404,))


def test_an_address_may_name_a_learner_that_is_new_or_none(tab: Tab, http: httpx.Client):
    page = tab.open("nobody", "learning")
    page.wait_for_selector("#notice:has-text('There is no learner nobody. This is ads.')")
    assert page.url.endswith("#learner=ads")
    http.put("/learners/new", json={"dimension": 2})
    page.evaluate("location.hash = 'learner=new'")  # the picker does not have it yet
    page.wait_for_function("() => document.getElementById('name').textContent === 'new'")
    assert page.locator("#notice").is_hidden()
    page.evaluate("location.hash = 'learner=none'")
    page.wait_for_selector("#notice:has-text('There is no learner none. This is new.')")
    page.locator("#picker").select_option("ads")
    tab.wait_for_state("learning")
    assert page.locator("#notice").is_hidden()
    http.delete("/learners/new")
    tab.check(refused=(404,))


def test_a_decision_opened_while_the_store_is_away_says_so(tab: Tab, store: Server):
    page = tab.open("ads", "learning")
    page.wait_for_selector("#decisions tbody button")
    store.stop()
    try:
        tab.wait_for_state("degraded")
        page.locator("#decisions tbody button").first.click()
        page.wait_for_selector("#opened .hint")
        assert tab.said("#opened .hint").endswith(".")
    finally:
        store.start()
    page.wait_for_selector("#opened .arms")
    tab.wait_for_state("learning")
    tab.check(refused=(503,))


def test_a_service_that_does_not_answer_is_unreachable_until_it_does(tab: Tab):
    page = tab.open("ads", "learning")
    page.route("**/learners**", lambda route: route.abort())
    tab.wait_for_state("unreachable")
    assert page.locator("#figures").is_visible()
    page.unroute_all()
    tab.wait_for_state("learning")
    assert {one for one in tab.complaints if "net::ERR_FAILED" not in one} == set()


def test_a_wide_learner_is_drawn_in_a_readable_part(tab: Tab, http: httpx.Client):
    for name, dimension in (("wide", 100), ("wider", 300)):
        arms = [{"features": [k * j % 7 / 7 for j in range(dimension)]} for k in range(9)]
        assert http.post("/select", json={"learner": name, "arms": arms}).status_code == 200
    page = tab.open("wide")
    page.wait_for_selector("#heat:has-text('drawn are the 64 with the strongest correlations')")
    assert page.locator("#heat svg g rect").count() == 64 * 64
    assert page.locator("#features tbody tr").count() == 1 + 24
    page.get_by_role("button", name="All 100 features").click()
    assert page.locator("#features tbody tr").count() == 1 + 100
    page.locator("#picker").select_option("wider")
    page.wait_for_selector("#heat:has-text('Not drawn for more than 256 features')")
    for name in ("wide", "wider"):
        http.delete(f"/learners/{name}")
    tab.check(refused=(404,))


def test_a_tab_that_nobody_sees_asks_for_nothing(tab: Tab):
    page = tab.open("ads", "learning")
    hide = """hidden => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    asked = len(tab.asked)
    page.wait_for_timeout(2_500)
    assert len(tab.asked) == asked
    page.evaluate(hide, False)
    wait_until_moved(tab, {"#figures .more": None})
    tab.check()


def test_a_page_of_another_site_cannot_reset_a_learner(tab: Tab, http: httpx.Client):
    url = f"{tab.url}/learners/ads/reset"
    tab.page.goto(tab.url.replace("127.0.0.1", "localhost") + "/health/live")  # another site
    with tab.page.expect_response(url) as answered:
        tab.page.evaluate("url => fetch(url, { method: 'POST', mode: 'no-cors' })", url)
    assert answered.value.status == 403
    assert http.get("/learners/ads").json()["rounds"] > 0
