"""What is shown of learners that come and go, and of workers that do; on a real store."""

import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
from prometheus_client.parser import text_string_to_metric_families

from service.api import exposition, metrics
from service.api.metrics import Metrics
from service.engine.engine import Engine
from service.engine.registry import Engines
from service.learner import Arms
from service.store.connect import connect

ODD = ["plain", 'qu"ote', "back\\slash", "new\nline", "ünïcödé ☃", "\u2028", "{a=b}", "nul\0"]


def samples(families) -> dict[tuple[str, ...], float]:
    """By name and label values, in the order of the labels' names."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


@asynccontextmanager
async def measured(url: str, directory: str = "") -> AsyncIterator[tuple[Engines, Metrics]]:
    client = connect(url)
    engines, shown = Engines(client), Metrics(directory, 0)
    await engines.start()
    shown.start(engines)
    try:
        yield engines, shown
    finally:
        await engines.stop()
        await shown.stop()
        await client.aclose()


async def select(engine: Engine, rows: list[list[float]], event_id: str) -> None:
    await engine.select(Arms.of(np.array(rows)), ["a"] * len(rows), event_id)


async def read(shown: Metrics) -> dict[tuple[str, ...], float]:
    return samples(text_string_to_metric_families((await shown.text()).decode()))


async def test_mean_reward_follows_from_sum_and_count(running_store):
    async with measured(running_store.url) as (engines, shown):
        await engines.put("x", {"dimension": 1})
        engine = await engines.get("x")
        for number, reward in enumerate((-2.0, 0.5, -1.0)):
            await select(engine, [[1.0]], f"e{number}")
            await engine.reward(f"e{number}", reward)
        await engine.flush()
        seen = await read(shown)
    assert seen["lacuna_reward_sum", "x"] == -2.5
    assert seen["lacuna_model_version", "x"] == 3
    assert seen["lacuna_arms", "x"] == 3


async def test_features_are_shown_by_name_however_odd(running_store):
    async with measured(running_store.url) as (engines, shown):
        await engines.put("x", {"features": ODD})
        nan = float("nan")
        await select(await engines.get("x"), [[nan, *[1.0] * 7], [1.0] * 8], "e")
        seen = await read(shown)
    rates = {key[1]: value for key, value in seen.items() if "feature_observed" in key[0]}
    assert rates == dict.fromkeys(ODD, 1.0) | {"plain": 0.5}


async def test_features_without_names_are_shown_by_position_and_not_too_many(running_store):
    async with measured(running_store.url) as (engines, shown):
        for name, dimension in (("small", 64), ("large", 65)):
            await engines.put(name, {"dimension": dimension})
            await select(await engines.get(name), [[1.0] * dimension], "e")
        seen = await read(shown)
    features = [key[1:] for key in seen if key[0] == "lacuna_feature_observed_rate"]
    assert features == [(position, "small") for position in sorted(map(str, range(64)))]
    assert ("lacuna_missing_rate", "large") in seen


async def test_nothing_is_shown_of_how_a_learner_was(running_store, monkeypatch):
    """Put away, reshaped or deleted: its gauges go, its counters stay."""

    def gauges(seen: dict[tuple[str, ...], float]) -> set[str]:
        return {key[0] for key in seen if "x" in key[1:] and not key[0].endswith("_total")}

    async with measured(running_store.url) as (engines, shown):
        await engines.put("x", {"features": ["old"]})
        await select(await engines.get("x"), [[1.0]], "e")
        seen = await read(shown)
        whole = gauges(seen)
        assert {"lacuna_pending", "lacuna_staleness_seconds", "lacuna_reward_sum"} < whole
        assert ("lacuna_feature_observed_rate", "old", "x") in seen

        await engines._drop("x", engines.alive["x"])  # as for idleness
        away = await read(shown)
        assert gauges(away) == {key for key in whole if "batch_size" in key}
        assert away["lacuna_entries_total", "x"] == 1

        await select(await engines.get("x"), [[1.0]], "f")
        assert gauges(await read(shown)) == whole

        await engines.delete("x")
        await engines.put("x", {"features": ["new", "newer"]})
        await engines.use("x", lambda engine: select(engine, [[1.0, 1.0]], "g"))
        seen = await read(shown)
        features = {key[1:] for key in seen if key[0] == "lacuna_feature_observed_rate"}
        assert features == {("new", "x"), ("newer", "x")}
        assert seen["lacuna_arms", "x"] == 1

        monkeypatch.setattr(metrics, "FEATURE_CELLS", 3)  # as many as were ever shown
        for names in (["newest"], ["old"]):
            await engines.delete("x")
            await engines.put("x", {"features": names})
            await engines.use("x", lambda engine: select(engine, [[1.0]], "h"))
            features = [key[1] for key in await read(shown) if "feature_observed" in key[0]]
            assert features == [name for name in names if name == "old"]


async def test_pending_is_that_of_now_whichever_worker_is_asked(running_store, tmp_path):
    async with measured(running_store.url, str(tmp_path)) as (engines, shown):
        await engines.put("x", {"dimension": 1})
        engine = await engines.get("x")
        await select(engine, [[1.0]], "e")
        assert (await read(shown))["lacuna_pending", "x"] == 1
        await engine.reward("e", 1.0)
        client = connect(running_store.url)
        other = Metrics(str(tmp_path), 1)  # it has no learner of its own
        other.start(Engines(client))
        assert (await read(other))["lacuna_pending", "x"] == 0
        await other.stop()
        await client.aclose()


async def test_a_scrape_does_not_wait_for_a_store_that_hangs(running_store, monkeypatch):
    monkeypatch.setattr(metrics, "STORE_WAIT_S", 0.1)
    async with measured(running_store.url) as (engines, shown):
        await engines.put("x", {"dimension": 1})
        await engines.get("x")
        assert (await read(shown))["lacuna_store_up",] == 1
        running_store.signal(signal.SIGSTOP)
        seen = await read(shown)
        assert seen["lacuna_store_up",] == 0
        assert ("lacuna_pending", "x") not in seen
        running_store.signal(signal.SIGCONT)
        assert (await read(shown))["lacuna_store_up",] == 1


def test_workers_are_added_up_and_the_worst_gauge_is_shown(tmp_path):
    one, two = Metrics(str(tmp_path), 0), Metrics(str(tmp_path), 1)
    for worker, times in ((one, 2), (two, 3)):
        for _ in range(times):
            worker.answered("/select", 200, 0.003)
            worker.rewarded("x", "recorded")
        # The later of two models has the smaller sum: the pair belongs together.
        model = float(times), -float(times)
        worker._show({("staleness_seconds", ("x",)): (5.0 - times,), ("model", ("x",)): model})
    seen = samples(two.collect())
    assert seen["lacuna_requests_total", "/select", "200"] == 5
    assert seen["lacuna_request_seconds_bucket", "/select", "0.002", "200"] == 0
    assert seen["lacuna_request_seconds_bucket", "/select", "0.004", "200"] == 5
    assert seen["lacuna_rewards_total", "x", "recorded"] == 5
    assert seen["lacuna_staleness_seconds", "x"] == 3
    assert (seen["lacuna_model_version", "x"], seen["lacuna_reward_sum", "x"]) == (3, -3)
    assert seen["lacuna_workers",] == 2


def test_a_worker_that_is_silent_says_nothing_about_now(tmp_path, monkeypatch):
    one, two = Metrics(str(tmp_path), 0), Metrics(str(tmp_path), 1)
    one.selected("x", degraded=True)
    one._show({("degraded", ("x",)): (1.0,)})
    monkeypatch.setattr(exposition, "SILENT_S", 0.05)
    time.sleep(0.1)
    two._show({})
    Metrics(str(tmp_path), 0)  # a successor that has not begun yet breaks no silence
    seen = samples(two.collect())
    assert seen["lacuna_worker_silent_seconds", "0"] >= 0.1
    assert seen["lacuna_selects_total", "true", "x"] == 1
    assert ("lacuna_degraded", "x") not in seen
    assert ("lacuna_worker_start_time_seconds", "0") not in seen
    assert seen["lacuna_workers",] == 1


def test_too_many_learners_share_a_label():
    shown = Metrics("", 0)
    for number in range(150):
        shown.selected(f"l{number}", degraded=False)
    seen = samples(shown.collect())
    counted = ("lacuna_selects_total", "false")
    values = {key[2]: value for key, value in seen.items() if key[:2] == counted}
    assert len(values) == 101
    assert values["_others"] == 50


async def test_of_learners_that_share_a_label_the_worst_is_shown(running_store, monkeypatch):
    monkeypatch.setattr(metrics, "MAX_LEARNERS", 1)
    async with measured(running_store.url) as (engines, shown):
        for name in ("x", "y", "z"):
            await engines.put(name, {"dimension": 1})
            await select(await engines.get(name), [[1.0]], "e")
        engines.alive["y"].synced_at -= 100.0
        seen = await read(shown)
    assert seen["lacuna_staleness_seconds", "_others"] > 100.0
    assert seen["lacuna_entries_total", "_others"] == 2
    assert ("lacuna_arms", "_others") not in seen
    assert ("lacuna_feature_observed_rate", "0", "_others") not in seen
