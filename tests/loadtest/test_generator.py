import pytest

from clients.errors import BadArgument, WorkerDied
from clients.loadtest.connection import Target, parse
from clients.loadtest.crew import Crew
from clients.loadtest.job import Job, Step

from .servers import chosen, stub

SMALL = {"learner": "a", "prefix": "t-", "arms": 2, "dimension": 2}


def drive(server, step: Step, **changes):
    job = Job(**(SMALL | {"url": server.url, "connections": 8} | changes))
    with Crew([job]) as crew:
        return crew.run([step], lambda found: None)


def test_a_stall_is_in_the_open_loop_latency_of_all_that_fell_due_in_it():
    rate, duration_s = 200.0, 3.0
    with stub(lambda path, body: (200, chosen(body))) as server:
        server.stall_once(after_s=1.0, for_s=0.6)
        found = drive(server, Step(duration_s, rate, "even"))
        stall_s = server.stalled_s
    # A fifth of all requests were due in the stall, and waited on average for half of it, though
    # only 8 of them could be under way: whoever counts from the sending sees 8 slow ones.
    assert found.selects.count == pytest.approx(rate * duration_s, abs=2)
    assert found.selects.longest_s >= 0.95 * stall_s
    for share in (0.85, 0.9, 0.95, 0.99):
        waited_s = stall_s - (1.0 - share) * duration_s
        # A busy machine adds to it; nothing may be missing.
        assert waited_s - 0.03 <= found.selects.quantile_s(share) <= waited_s + 0.3


def test_a_closed_loop_sees_the_stall_once_per_connection():
    with stub(lambda path, body: (200, chosen(body))) as server:
        server.stall_once(after_s=0.3, for_s=0.5)
        found = drive(server, Step(1.0))
    slow = found.selects.counts[found.selects.counts.cumsum() > found.selects.count - 8].sum()
    assert found.selects.longest_s >= 0.4
    assert slow <= 16


def test_arrivals_keep_their_rate_whatever_their_spacing():
    with stub(lambda path, body: (200, chosen(body))) as server:
        found = drive(server, Step(1.0, 400.0))
    assert 300 < found.selects.count < 500
    assert found.account.selects == found.selects.count


@pytest.mark.parametrize(
    "wrong",
    [
        {"event_id": "another"},
        {"index": 2, "arm": "ad-2"},
        {"arm": "ad-1"},
        {"probability": 0.0},
        {"index": "0"},
    ],
)
def test_an_answer_that_cannot_be_right_is_noticed(wrong):
    with stub(lambda path, body: (200, chosen(body) | wrong)) as server:
        found = drive(server, Step(0.1, 50.0, "even"))
    assert found.account.errors["wrong answer"] == found.selects.count > 0
    assert found.account.wrong[0].startswith("select t-000000001: ")


def test_a_reward_that_counts_twice_is_noticed():
    def answer(path, body):
        if path == "/reward":
            return 200, {"event_id": body["event_id"], "status": "recorded"}
        return 200, chosen(body)

    with stub(answer) as server:
        found = drive(
            server, Step(0.2, 50.0, "even"), rewards=1.0, duplicates=1.0, reward_delay_s=0.01
        )
    assert found.account.errors["wrong answer"] > 0
    assert "recorded a second time" in found.account.wrong[0]


def test_another_arm_for_the_same_event_is_noticed():
    asked = []

    def answer(path, body):
        asked.append(body["event_id"])
        return 200, chosen(body, index=asked.count(body["event_id"]) - 1)

    with stub(answer) as server:
        found = drive(server, Step(0.2, 50.0, "even"), duplicates=1.0, reward_delay_s=0.01)
    assert found.account.repeats > 0
    assert found.account.errors["wrong answer"] == found.account.repeats


def test_what_was_lost_on_its_way_is_sent_again_under_the_same_id():
    stored = {}

    def answer(path, body):
        if path == "/select":
            return 200, chosen(body)
        known = stored.get(body["event_id"])
        stored.setdefault(body["event_id"], body["reward"])
        if known is None:
            return None  # stored, and the caller never hears of it
        return 200, {"event_id": body["event_id"], "status": "duplicate", "reward": known}

    with stub(answer) as server:
        found = drive(server, Step(0.2, 100.0, "even"), rewards=1.0, reward_delay_s=0.01)
    account = found.account
    assert account.errors == {"connection lost": account.recorded}
    assert account.recorded == len(stored) == account.retries
    assert account.reward_sum == sum(stored.values())
    assert account.doubtful_rewards == 0


def test_what_never_gets_an_answer_is_in_doubt():
    def answer(path, body):
        return (200, chosen(body)) if path == "/select" else (503, {})

    with stub(answer) as server:
        found = drive(
            server, Step(0.1, 50.0, "even"), rewards=1.0, reward_delay_s=0.01, drain_s=0.5
        )
    assert found.account.doubtful_rewards == found.account.selects > 0
    assert found.account.recorded == 0


def test_a_member_that_dies_is_a_sentence():
    with (
        stub(lambda path, body: (200, chosen(body))) as server,
        Crew([Job(**SMALL, url=server.url)]) as crew,
    ):
        crew.members[0].kill()
        with pytest.raises(WorkerDied, match="before its time"):
            crew.run([Step(1.0)], lambda found: None)


def test_answers_are_read_in_parts():
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbody"
    assert parse(whole) == (200, b"body", True)
    assert all(parse(whole[:end]) is None for end in range(len(whole)))


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://a", "http://", "http://a:x"])
def test_a_url_that_is_none_is_refused(url):
    with pytest.raises(BadArgument, match="URL: must be like"):
        Target.of(url)
