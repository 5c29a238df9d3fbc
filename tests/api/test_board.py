import math

from service.api.board import Board, read_all
from service.api.metrics import Metrics


def test_a_successor_goes_on_with_the_board_of_its_worker(tmp_path):
    first = Board(str(tmp_path), 0)
    first.cells[first.at("hits", ("a",))] += 2.0
    first.cells[first.at("sizes", ("a",), 3) + 1] += 1.0
    second = Board(str(tmp_path), 0)
    second.cells[second.at("hits", ("a",))] += 1.0
    second.cells[second.at("hits", ("b",))] += 5.0
    assert list(read_all(str(tmp_path), second)) == [
        ("hits", ("a",), [3.0]),
        ("sizes", ("a",), [0.0, 1.0, 0.0]),
        ("hits", ("b",), [5.0]),
    ]


def test_a_half_written_line_is_not_read(tmp_path):
    board = Board(str(tmp_path), 0)
    board.cells[board.at("hits", ())] += 1.0
    with (tmp_path / "worker-0.list").open("a") as file:
        file.write('["hal')
    assert list(read_all(str(tmp_path), board)) == [("hits", (), [1.0])]


def test_a_full_board_takes_no_new_series(tmp_path):
    board = Board(str(tmp_path), 0)
    for number in range(5_000):
        board.cells[board.at("sizes", (str(number),), 16)] += 1.0
    assert len(list(read_all(str(tmp_path), board))) < 5_000


def test_workers_are_added_up_and_the_worst_gauge_is_shown(tmp_path):
    one, two = Metrics(str(tmp_path), 0), Metrics(str(tmp_path), 1)
    for metrics, times in ((one, 2), (two, 3)):
        for _ in range(times):
            metrics.answered("/select", 200, 0.003)
            metrics.rewarded("x", "recorded")
        metrics._gauge("staleness_seconds", ("x",), float(times))
    one._gauge("pending", ("x",), math.nan)
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in two.collect()
        for sample in family.samples
    }
    by = (("endpoint", "/select"), ("status", "200"))
    assert samples[("lacuna_requests_total", *by)] == 5
    assert samples[("lacuna_request_seconds_bucket", by[0], ("le", "0.002"), by[1])] == 0
    assert samples[("lacuna_request_seconds_bucket", by[0], ("le", "0.004"), by[1])] == 5
    assert samples[("lacuna_rewards_total", ("learner", "x"), ("status", "recorded"))] == 5
    assert samples[("lacuna_staleness_seconds", ("learner", "x"))] == 3
    assert ("lacuna_pending", ("learner", "x")) not in samples


def test_too_many_learners_share_a_label():
    metrics = Metrics("", 0)
    for number in range(150):
        metrics.selected(f"l{number}", degraded=False)
    [family] = [one for one in metrics.collect() if one.name == "lacuna_selects"]
    values = {sample.labels["learner"]: sample.value for sample in family.samples}
    assert len(values) == 101
    assert values["_others"] == 50
