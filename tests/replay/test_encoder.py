import numpy as np
import pytest

from clients.replay import encoder, raw, sampling
from clients.replay.errors import BadFile, TooFew

FIELDS = tuple("abcdef")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    kinds = rng.integers(6, size=2_000)
    columns = [(kinds + rng.integers(3, size=2_000)) % 9 for _ in FIELDS]
    table = np.array(columns).T.astype(str)
    table[rng.random(table.shape) < 0.05] = ""
    return [tuple(value or None for value in row) for row in table.tolist()]


def correlations(codes):
    matrix = np.corrcoef(codes.T)
    return np.abs(matrix[np.triu_indices(len(matrix), 1)])


@pytest.mark.parametrize("mix", encoder.MIXES)
def test_coordinates_are_normalised(rows, mix):
    codes = encoder.fit(rows, FIELDS, 8, mix=mix).encode(rows)
    assert codes.dtype == np.float32
    assert codes.mean(axis=0) == pytest.approx(np.zeros(8), abs=1e-5)
    assert codes.std(axis=0) == pytest.approx(np.ones(8), rel=1e-4)


def test_the_autoencoder_keeps_its_coordinates_correlated_and_pca_does_not(rows):
    of = {mix: correlations(encoder.fit(rows, FIELDS, 8, mix=mix).encode(rows))
          for mix in encoder.MIXES}  # fmt: skip
    assert of["autoencoder"].mean() > 0.5
    assert of["gaussian"].mean() > 0.1
    assert of["pca"].max() < 1e-4


def test_every_mix_spans_the_principal_subspace(rows):
    codes = {mix: encoder.fit(rows, FIELDS, 8, mix=mix).encode(rows) for mix in encoder.MIXES}
    for mixed in (codes["autoencoder"], codes["gaussian"]):
        weights = np.linalg.lstsq(mixed, codes["pca"], rcond=None)[0]
        assert mixed @ weights == pytest.approx(codes["pca"], abs=1e-3)


def test_a_reloaded_encoder_gives_the_same_codes(rows, tmp_path):
    made = encoder.fit(rows, FIELDS, 8, mix="autoencoder")
    path = tmp_path / "deep" / "encoder.npz"
    made.save(path)
    again = encoder.Encoder.load(path)
    assert again.fields == made.fields
    unseen = [("never", None, "seen", "1", "2", "3")]
    assert np.array_equal(again.encode(rows + unseen), made.encode(rows + unseen))


def test_something_else_is_no_encoder(tmp_path):
    path = tmp_path / "x.npz"
    for content in (b"", b"hello", b"PK\x03\x04"):
        path.write_bytes(content)
        with pytest.raises(BadFile, match="is not an encoder"):
            encoder.Encoder.load(path)
    np.savez(path, weights=np.ones(3))
    with pytest.raises(BadFile, match="is not an encoder"):
        encoder.Encoder.load(path)


def test_the_order_of_rows_does_not_matter(rows):
    one = encoder.fit(rows, FIELDS, 4, mix="autoencoder")
    other = encoder.fit(rows[::-1], FIELDS, 4, mix="autoencoder")
    assert one.categories == other.categories
    assert one.encode(rows) == pytest.approx(other.encode(rows), abs=1e-4)


def test_rare_categories_share_a_column():
    rows = [("common",)] * 1_998 + [("rare",), ("rarer",)]
    assert encoder.frequent(rows, 1) == (("common", encoder.OTHER),)


def test_too_few_categories_for_the_dimension_are_told():
    with pytest.raises(TooFew, match="span 1 dimensions, fewer than the 4"):
        encoder.fit([("x",), ("y",)] * 5, ("a",), 4, mix="pca")


def test_a_raw_field_that_is_missing_is_missing_in_all_its_features():
    rows = [("x", None), ("x", "1"), ("y", "2"), ("z", "1")]
    x = raw.features(rows, ("a", "b"))
    assert x.shape == (4, len(raw.names(("a", "b"))))
    assert np.isnan(x).tolist() == [[False] * 3 + [True] * 3] + [[False] * 6] * 3
    assert np.nanmean(x, axis=0) == pytest.approx(np.zeros(6), abs=1e-6)
    assert x[0, 1] == x[1, 1] > x[2, 1]  # "x" is the most frequent


def test_a_reservoir_is_uniform_and_bounded():
    counts = np.zeros(50)
    for seed in range(2_000):
        kept = sampling.reservoir(range(50), 10, seed)
        assert len(set(kept)) == 10
        counts[kept] += 1
    # Each is kept 400 times, give or take five standard deviations.
    assert counts == pytest.approx(np.full(50, 400.0), abs=5 * np.sqrt(2_000 * 0.2 * 0.8))
