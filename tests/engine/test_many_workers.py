"""Many worker processes are one learner. LACUNA_SOAK=1 plays the full size."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from tests.engine.processes import SOAK, Ledger, Process, configure, logged_events, processes
from tests.servers import server, wait_for

EVENTS = 20_000 if SOAK else 2_000
KILLS = 20
SHARED_REWARDS = 5_000 if SOAK else 600
SECONDS_AWAY = 10.0 if SOAK else 2.0


def test_four_workers_have_the_moments_of_one_and_the_same_bits_of_the_model():
    with server() as one:
        digests = {}
        for name, count in (("alone", 1), ("shared", 4)):
            configure(one, name)
            with processes(one.url, count) as workers:
                for w, worker in enumerate(workers):
                    worker.tell("traffic", learner=name, numbers=list(range(w, EVENTS, count)))
                for worker in workers:
                    worker.hear("done")
                for worker in workers:  # the first to flush has not seen the last to flush
                    worker.ask("digest", learner=name)
                digests[name] = [worker.ask("digest", learner=name) for worker in workers]
        [alone], shared = digests["alone"], digests["shared"]
        assert alone["rounds"] == EVENTS
        for digest in shared:
            assert digest["bits"] == shared[0]["bits"]
            assert digest["count"] == alone["count"] == EVENTS
            assert digest["sum_y"] == shared[0]["sum_y"]
            assert (digest["rounds"], digest["arms"]) == (alone["rounds"], alone["arms"])
            assert digest["p"] == alone["p"]
            scale = np.abs(alone["z"]).max()
            np.testing.assert_allclose(digest["xi"], alone["xi"], rtol=1e-10, atol=1e-12 * scale)
            np.testing.assert_allclose(digest["z"], alone["z"], rtol=1e-10, atol=1e-12 * scale)
        assert min(digest["refreshes"] for digest in shared) >= 4
        with processes(one.url, 1) as [late]:
            assert late.ask("digest", learner="shared")["bits"] == shared[0]["bits"]


def test_killed_workers_lose_nothing_that_was_acknowledged():
    ledger, chance = Ledger(), random.Random(5)
    with server() as one:
        configure(one, "one")
        first = 0
        with processes(one.url, 1) as [steady]:
            for _ in range(KILLS):
                doomed = Process(one.url)
                doomed.tell(
                    "traffic", learner="one", numbers=list(range(first, first + 5_000)),
                    rewarded=0.7, pause_s=0.002,
                )  # fmt: skip
                time.sleep(chance.uniform(0.05, 0.4))
                doomed.kill()
                assert ["done", "traffic"] not in doomed.heard
                ledger.enter(doomed)
                first += 5_000
            logged = ledger.check(one, "one")
            assert len(ledger.acknowledged) > KILLS
            # Everything that was answered can still be rewarded, once.
            left = sorted(ledger.selected - set(logged))
            assert left
            steady.tell("rewards", learner="one", numbers=sorted(ledger.selected))
            steady.hear("done")
            ledger.enter(steady)
            assert set(left) <= set(ledger.recorded)
            logged = ledger.check(one, "one")
            digest = steady.ask("digest", learner="one")
            assert digest["count"] == len(logged)
            assert digest["sum_y"] == sum(logged) * 2.0**-20
            # And asked again, every event has the answer that it had.
            steady.tell("traffic", learner="one", numbers=sorted(ledger.selected), rewarded=0.0)
            steady.hear("done")
            ledger.enter(steady)
            ledger.check(one, "one")
            assert steady.ask("digest", learner="one")["rounds"] == digest["rounds"]
            # All that was acknowledged is in the moments, but for what a worker had not written
            # when it was killed: rounds that were answered are at most a few batches short.
            with one.admin() as admin:
                stored = int(admin.hget("lacuna:{one}:meta", "rounds") or 0)
            assert stored >= len(ledger.selected)
            assert digest["rounds"] <= stored


def test_a_killed_server_with_every_write_on_disk_loses_nothing_that_was_acknowledged():
    ledger = Ledger()
    with server(appendonly="yes", appendfsync="always") as one:
        configure(one, "one")
        with processes(one.url, 2) as workers:
            for w, worker in enumerate(workers):
                numbers = list(range(w, 40_000, 2))
                worker.tell("traffic", learner="one", numbers=numbers, rewarded=0.7, pause_s=0.005)
            for _ in range(4):
                time.sleep(0.7)
                one.kill()
                time.sleep(0.1)
                one.start()
            time.sleep(0.7)
            for worker in workers:
                worker.kill()
                ledger.enter(worker)
        assert ledger.failed == []
        assert ledger.degraded
        logged = ledger.check(one, "one")
        with processes(one.url, 1) as [after]:
            digest = after.ask("digest", learner="one")
            assert digest["count"] == len(logged) > 100
            assert digest["sum_y"] == sum(logged) * 2.0**-20


def test_selects_never_fail_while_the_server_is_gone_and_nothing_acknowledged_is_lost():
    ledger = Ledger()
    with server(appendonly="yes", appendfsync="always") as one:
        configure(one, "one")
        with processes(one.url, 2) as workers:
            for w, worker in enumerate(workers):
                numbers = list(range(w, 1_000_000, 2))[: int(400 + 100 * SECONDS_AWAY)]
                worker.tell(
                    "traffic", learner="one", numbers=numbers, rewarded=0.5, pause_s=0.05,
                    at_once=8,
                )  # fmt: skip
            time.sleep(1.0)
            one.kill()
            time.sleep(SECONDS_AWAY)
            one.start()
            for worker in workers:
                worker.hear("done", within_s=60)
            for worker in workers:
                worker.ask("digest", learner="one")
            digests = [worker.ask("digest", learner="one") for worker in workers]
            for worker in workers:
                ledger.enter(worker)
        assert ledger.failed == []
        assert len(ledger.degraded) > 10
        assert ledger.sent == ledger.acknowledged
        logged = ledger.check(one, "one")
        assert digests[0]["bits"] == digests[1]["bits"]
        assert digests[0]["count"] == len(logged) == len(ledger.sent)
        assert digests[0]["rounds"] == len(ledger.selected)  # no arm lost, none counted twice


def test_an_event_is_counted_once_whoever_sends_its_reward_while_the_sweeper_runs():
    senders = 8
    with server() as one:
        configure(one, "one", reward_wait_s=0.5, default_reward=-1.0)
        events = SHARED_REWARDS + 50  # the last of them are never rewarded
        with processes(one.url, senders) as workers:
            workers[0].tell("traffic", learner="one", numbers=list(range(events)), rewarded=0.0)
            workers[0].hear("done")
            for w, worker in enumerate(workers):
                order = list(range(SHARED_REWARDS))
                random.Random(w).shuffle(order)
                worker.tell("rewards", learner="one", numbers=order)
            ledger = Ledger()
            for worker in workers:
                worker.hear("done")
                ledger.enter(worker)
            with one.admin() as admin:
                wait_for(lambda: admin.zcard("lacuna:{one}:due") == 0, "all defaults are booked")
                meta = admin.hgetall("lacuna:{one}:meta")
            recorded, defaults = int(meta.get(b"recorded", 0)), int(meta[b"defaults"])
            assert recorded + defaults == events
            assert defaults >= 50
            assert len(ledger.recorded) == len(set(ledger.recorded)) == recorded
            logged = logged_events(one, "one")
            assert len(logged) == events
            assert sorted(n for n in logged if n >= 0) == sorted(ledger.recorded)
            workers[0].ask("digest", learner="one")
            digests = [worker.ask("digest", learner="one") for worker in workers[:2]]
            assert digests[0]["bits"] == digests[1]["bits"]
            assert digests[0]["count"] == events


@pytest.mark.parametrize("signal", ["stop", "kill"])
def test_a_worker_that_ends_leaves_its_moments(signal):
    with server() as one:
        configure(one, "one")
        with processes(one.url, 2, worker_silent_s=0.2, merge_interval_s=0.1) as [first, second]:
            first.tell("traffic", learner="one", numbers=list(range(50)))
            first.hear("done")
            first.ask("digest", learner="one")
            getattr(first, signal)()
            second.tell("traffic", learner="one", numbers=list(range(50, 60)))
            second.hear("done")
            deadline_s = time.monotonic() + 10
            while True:
                with one.admin() as admin:
                    fields = admin.hkeys("lacuna:{one}:moments")
                if len(fields) == 2 and b"base" in fields:  # the base, and the second's own
                    break
                assert time.monotonic() < deadline_s, fields
                time.sleep(0.05)
            assert second.ask("digest", learner="one")["rounds"] == 60
