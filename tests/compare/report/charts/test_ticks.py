import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.report.charts.ticks import linear_ticks, logarithmic_ticks


def at_most(count):
    return lambda ticks: len(ticks) <= count


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0, 1, 6, ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0, 1, 5, ["0", "0.5", "1.0"]),
        (0.31, 0.47, 5, ["0.35", "0.40", "0.45"]),
        (-1, 1, 5, ["−1.0", "−0.5", "0", "0.5", "1.0"]),
        (0, 4000, 5, ["0", "1,000", "2,000", "3,000", "4,000"]),
        (0, 48_000, 4, ["0", "20k", "40k"]),
        (10_000, 12_000, 5, ["10.0k", "10.5k", "11.0k", "11.5k", "12.0k"]),
        (0, 3e6, 4, ["0", "1M", "2M", "3M"]),
        (0, 4e-7, 5, ["0", "1e−7", "2e−7", "3e−7", "4e−7"]),
        (0, 4e20, 5, ["0", "1e20", "2e20", "3e20", "4e20"]),
        (1e9, 1e9 + 4, 5, ["1,000,000,000", "1,000,000,001", "1,000,000,002", "1,000,000,003", "1,000,000,004"]),
    ],
)
def test_linear(low, high, most, expected):
    assert [tick.text for tick in linear_ticks(low, high, at_most(most))] == expected


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (1000, 48_000, 9, ["1k", "2k", "4k", "8k", "16k", "32k"]),
        (4, 128, 9, ["4", "8", "16", "32", "64", "128"]),
        (1, 512, 9, ["1", "4", "16", "64", "256"]),
        (300, 5000, 9, ["500", "1k", "2k", "4k"]),
        (60, 2000, 9, ["100", "200", "500", "1k", "2k"]),
        (0.5, 60_000, 9, ["1", "10", "100", "1k", "10k"]),
        (1e-9, 1e9, 7, ["1e−9", "1e−6", "0.001", "1", "1k", "1M", "1G"]),
        (1000, 3000, 5, ["1,000", "1,500", "2,000", "2,500", "3,000"]),
        (2e-7, 2e-6, 9, ["2e−7", "5e−7", "1e−6", "2e−6"]),
    ],
)
def test_logarithmic(low, high, most, expected):
    assert [tick.text for tick in logarithmic_ticks(low, high, at_most(most))] == expected


def test_whole_numbers_have_nothing_between_them():
    assert [tick.text for tick in linear_ticks(0, 2, at_most(9), whole=True)] == ["0", "1", "2"]


def test_the_next_ones_around():
    assert [tick.value for tick in linear_ticks(0.31, 0.47, at_most(5), around=True)] == [0.3, 0.35, 0.4, 0.45, 0.5]


values = st.floats(-1e300, 1e300, allow_nan=False)


@given(values, values, st.integers(3, 9), st.booleans())
def test_linear_ticks_stand_in_the_range_at_equal_distances(one, other, most, around):
    low, high = sorted((one, other))
    if high - low <= 1e-9 * max(abs(low), abs(high)) or high - low < 1e-300:
        return
    ticks = linear_ticks(low, high, at_most(most), around=around)
    numbers = [tick.value for tick in ticks]
    assert len(ticks) <= max(most, 1)
    assert numbers == sorted(set(numbers))
    gaps = [b - a for a, b in pairwise(numbers)]
    assert all(math.isclose(gap, gaps[0], rel_tol=1e-6) for gap in gaps)
    span = high - low
    if around:
        assert numbers[0] <= low + 1e-6 * span
        assert numbers[-1] >= high - 1e-6 * span
    else:
        assert all(low - 1e-6 * span <= value <= high + 1e-6 * span for value in numbers)
    assert len({tick.text for tick in ticks}) == len(ticks)


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300), st.integers(2, 9))
def test_logarithmic_ticks_stand_in_the_range_and_all_differ(one, other, most):
    low, high = sorted((one, other))
    if high / low < 1 + 1e-6:
        return
    ticks = logarithmic_ticks(low, high, at_most(most))
    numbers = [tick.value for tick in ticks]
    assert numbers == sorted(set(numbers))
    assert len({tick.text for tick in ticks}) == len(ticks)
    assert all(low * (1 - 1e-6) <= value <= high * (1 + 1e-6) for value in numbers)
