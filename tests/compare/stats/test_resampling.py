from itertools import product

import numpy as np
import pytest

from oprag.compare.stats.resampling import bootstrap_counts, random_signs, sign_patterns

SIZES = [(1, 100), (2, 100), (37, 1000), (500, 10_000)]
"""The last ones do not fit one block."""


@pytest.mark.parametrize(("units", "resamples"), SIZES)
def test_as_many_are_drawn_as_there_are(units, resamples):
    rows = np.concatenate(list(bootstrap_counts(units, resamples, 0)))
    assert rows.shape == (resamples, units)
    assert (rows.sum(axis=1) == units).all()
    assert rows.min() >= 0
    # Each unit is drawn once on average, with the variance of a binomial count.
    assert rows.mean() == 1
    assert rows.var() == pytest.approx(1 - 1 / units, abs=0.1)


@pytest.mark.parametrize(("units", "resamples"), SIZES)
def test_signs_are_tossed(units, resamples):
    rows = np.concatenate(list(random_signs(units, resamples, 0)))
    assert rows.shape == (resamples, units)
    assert set(np.unique(rows)) == {-1, 1}
    assert abs(rows.mean()) < 4 / np.sqrt(rows.size)


def test_every_pattern_is_there_once():
    patterns = sign_patterns(4)
    assert {tuple(row) for row in patterns} == set(product([1.0, -1.0], repeat=4))
    assert len(patterns) == 16


@pytest.mark.parametrize("weights", [bootstrap_counts, random_signs])
def test_what_is_kept_is_the_same(weights, monkeypatch):
    kept = [np.concatenate(list(weights(500, 9_000, 3))) for _ in range(2)]
    monkeypatch.setattr("oprag.compare.stats.resampling._MAX_CACHED_BYTES", 0)
    made = np.concatenate(list(weights(500, 9_000, 3)))
    assert all(np.array_equal(one, made) for one in kept)
