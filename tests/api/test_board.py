from service.api.board import Board, read_all


def test_a_successor_goes_on_with_the_board_of_its_worker(tmp_path):
    first = Board(str(tmp_path), 0)
    first.cells[first.at("hits", ("a",))] += 2.0
    first.cells[first.at("sizes", ("a",), 3) + 1] += 1.0
    second = Board(str(tmp_path), 0)
    second.cells[second.at("hits", ("a",))] += 1.0
    second.cells[second.at("hits", ("b",))] += 5.0
    [series] = read_all(str(tmp_path), second)
    assert series == [
        ("hits", ("a",), [3.0]),
        ("sizes", ("a",), [0.0, 1.0, 0.0]),
        ("hits", ("b",), [5.0]),
    ]
    assert (second.cells_of("hits"), second.cells_of("sizes")) == (2, 3)


def test_a_half_written_line_is_not_read(tmp_path):
    board = Board(str(tmp_path), 0)
    board.cells[board.at("hits", ())] += 1.0
    with (tmp_path / "worker-0.list").open("a") as file:
        file.write('["hal')
    assert list(read_all(str(tmp_path), board)) == [[("hits", (), [1.0])]]


def test_a_full_board_takes_no_new_series(tmp_path):
    board = Board(str(tmp_path), 0)
    for number in range(5_000):
        board.cells[board.at("sizes", (str(number),), 16)] += 1.0
    [series] = read_all(str(tmp_path), board)
    assert len(series) < 5_000
