import gzip

import pytest

from clients.errors import BadArgument
from clients.replay.datasets import DATASETS
from clients.replay.errors import BadFile
from clients.replay.files import sources
from tests.replay import published


def read(name, *paths):
    """All impressions as (clicked, {field: value})."""
    dataset = DATASETS[name]
    files = dataset.assign(sources(paths, dataset.encoding))
    found = list(dataset.stream(files))
    rows = dataset.complete([one.key for one in found], files)
    return [
        (one.clicked, dict(zip(dataset.fields, row, strict=True)))
        for one, row in zip(found, rows, strict=True)
    ]


def test_avazu_rows_are_read_and_placeholders_are_missing(tmp_path):
    (no, on_site), (yes, in_app) = read("avazu", published.avazu(tmp_path / "train"))
    assert (no, yes) == (False, True)
    assert (on_site["hour_of_day"], in_app["hour_of_day"]) == ("00", "23")
    assert on_site["site_id"] == "1fbe01fe"
    assert {on_site[name] for name in ("app_id", "app_domain", "device_id", "C20")} == {None}
    assert {in_app[name] for name in ("site_id", "site_domain", "site_category")} == {None}
    assert (in_app["app_id"], in_app["C20"]) == ("f53417e1", "100084")
    assert "id" not in on_site
    assert "click" not in on_site


def test_gzip_zip_and_gzip_within_zip_read_as_the_plain_file(tmp_path):
    plain = published.avazu(tmp_path / "train.csv")
    packed = published.avazu(tmp_path / "train.gz")
    expected = read("avazu", plain)
    assert read("avazu", packed) == expected
    assert read("avazu", published.zipped(tmp_path / "a.zip", plain)) == expected
    test_file = tmp_path / "test.gz"
    test_file.write_bytes(gzip.compress(b"id,hour\n1,2\n"))
    kaggle = published.zipped(tmp_path / "b.zip", packed, test_file)
    assert read("avazu", kaggle) == expected


def test_taobao_is_joined_whatever_the_order_of_its_files(tmp_path):
    paths = published.taobao(tmp_path)
    rows = read("taobao", *paths)
    assert [clicked for clicked, _ in rows] == [False, True, False]
    first, second, third = (row for _, row in rows)
    assert (first["cate_id"], first["brand"], first["price_band"]) == ("9025", "95471", "3")
    assert (second["brand"], second["price_band"]) == (None, "0")
    assert (second["pvalue_level"], second["new_user_class_level"]) == (None, "3")
    assert third["cate_id"] is None  # an ad that ad_feature.csv does not have
    assert third["age_level"] is None
    assert first["hour_of_day"] == "14"  # 06:14 UTC in China
    assert read("taobao", *reversed(paths)) == rows
    assert read("taobao", tmp_path) == rows


def test_movielens_counts_a_rating_of_5_and_reads_the_archive(tmp_path):
    paths = published.movielens(tmp_path)
    rows = read("movielens", *paths)
    assert [clicked for clicked, _ in rows] == [False, True, True]
    first, second, third = (row for _, row in rows)
    assert (first["age"], first["gender"], first["occupation"]) == ("40s", "M", "writer")
    assert (first["movie"], first["year"], first["comedy"]) == ("242", "1990", "1")
    assert second["year"] is None
    assert third["movie"] is None  # not in u.item
    assert read("movielens", published.zipped(tmp_path / "ml-100k.zip", *paths)) == rows


def refused(name, *paths):
    with pytest.raises((BadFile, BadArgument)) as error:
        read(name, *paths)
    return str(error.value)


def test_a_row_cut_short_names_file_and_line(tmp_path):
    path = published.avazu(tmp_path / "cut", [published.AVAZU_ROWS[0], "1,0,14102100,1005"])
    assert refused("avazu", path) == f"{path}, line 3: has 4 columns, not 24: cut short?"


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (",0,14102100,", ",2,14102100,", "line 2: click must be 0 or 1, not '2'"),
        (",14102100,", ",yesterday,", "line 2: hour must be YYMMDDHH, not 'yesterday'"),
    ],
)
def test_a_value_that_cannot_be_names_file_and_line(tmp_path, before, after, says):
    row = published.AVAZU_ROWS[0].replace(before, after)
    path = published.avazu(tmp_path / "bad", [row])
    assert refused("avazu", path) == f"{path}, {says}"


def test_a_truncated_gzip_file_names_the_line_where_it_ends(tmp_path):
    path = published.avazu(tmp_path / "train.gz", published.AVAZU_ROWS * 5_000)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    said = refused("avazu", path)
    assert said.startswith(f"{path}, line ")
    assert said.endswith("the compressed data end early")
    assert int(said.split("line ")[1].split(":")[0].replace(",", "")) > 1_000


def test_damaged_compressed_data_are_told_with_their_line(tmp_path):
    path = published.avazu(tmp_path / "train.gz", published.AVAZU_ROWS * 5_000)
    whole = bytearray(path.read_bytes())
    whole[-8] ^= 0xFF  # the checksum
    path.write_bytes(whole)
    assert "the compressed data are damaged" in refused("avazu", path)


def test_a_truncated_zip_file_is_told(tmp_path):
    path = published.zipped(tmp_path / "a.zip", published.avazu(tmp_path / "train"))
    path.write_bytes(path.read_bytes()[:-30])
    assert refused("avazu", path).startswith(f"{path}, line 1: is a damaged or truncated zip file")


def test_foreign_empty_binary_and_absent_files_are_told(tmp_path):
    foreign, empty, binary = tmp_path / "f", tmp_path / "e", tmp_path / "b"
    foreign.write_text("name,price\nshoe,3\n")
    empty.touch()
    binary.write_bytes(b"\xff\xfe\x00")
    assert "line 1: is not a file of avazu (train); it begins with 'name,price'" in refused(
        "avazu", foreign
    )
    assert refused("avazu", empty) == f"{empty}, line 1: is empty"
    assert refused("avazu", binary) == f"{binary}, line 1: is not utf-8 text"
    assert "no file" in refused("avazu", tmp_path / "none")


def test_a_file_of_a_set_that_is_missing_or_double_is_named(tmp_path):
    users, log, ads = published.taobao(tmp_path)
    assert "taobao needs ad_feature.csv as well" in refused("taobao", users, log)
    assert "is a second user_profile.csv" in refused("taobao", users, users)
    assert "is not a file of movielens" in refused("movielens", ads)


def test_a_bad_rating_or_age_names_its_line(tmp_path):
    data, users, items = published.movielens(tmp_path)
    data.write_text(published.U_DATA + "1\t2\t9\t3\n")
    assert f"{data}, line 4: a rating must be 1 to 5, not '9'" in refused(
        "movielens", data, users, items
    )
    data.write_text(published.U_DATA)
    users.write_text(published.U_USER + "9|old|M|writer|1\n")
    assert f"{users}, line 3: age" in refused("movielens", data, users, items)
