import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.report.charts.axes import Axis, figure, scale_of

LINEAR, LOGARITHMIC = Axis("x"), Axis("x", logarithmic=True)


def texts(values, axis=LINEAR, *, around=False):
    return [text for _, text in scale_of(axis, values, 0, 100, around=around).numbers]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1], ["0", "0.5", "1.0"]),
        ([0.31, 0.47], ["0.35", "0.40", "0.45"]),
        ([-1, 1], ["−1.0", "−0.5", "0", "0.5", "1.0"]),
        ([0, 4000], ["0", "1,000", "2,000", "3,000", "4,000"]),
        ([0, 48_000], ["0", "20k", "40k"]),
        ([0, 3e6], ["0", "1M", "2M", "3M"]),
        ([0, 4e-7], ["0", "1e−7", "2e−7", "3e−7", "4e−7"]),
        ([0, 4e20], ["0", "1e20", "2e20", "3e20", "4e20"]),
        ([3, 3], ["2", "3", "4"]),
        ([0, 0], ["−0.5", "0", "0.5"]),
        ([-5e-324, 0, 5e-324], ["−0.5", "0", "0.5"]),
        # But for the rounding of a sum these are one value.
        ([0.1 + 0.2, 0.3], ["0.2", "0.3", "0.4"]),
    ],
)
def test_linear_numbers(values, expected):
    assert texts(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1000, 48_000], ["1k", "2k", "5k", "10k", "20k"]),
        ([4, 128], ["5", "10", "20", "50", "100"]),
        ([0.5, 60_000], ["1", "10", "100", "1k", "10k"]),
        ([1e-9, 1e9], ["1e−8", "0.0001", "1", "10k", "100M"]),
        ([3, 4], ["3", "4"]),
        ([8, 8], ["5", "10"]),
    ],
)
def test_logarithmic_numbers(values, expected):
    assert texts(values, LOGARITHMIC) == expected


def test_a_scale_goes_on_to_the_next_numbers_around():
    scale = scale_of(LINEAR, [0.31, 0.47], 200, 8, around=True)
    assert [text for _, text in scale.numbers] == ["0.30", "0.35", "0.40", "0.45", "0.50"]
    assert (scale.place(0.3), scale.place(0.5)) == pytest.approx((200, 8))
    assert scale.place(0.4) == pytest.approx(104)


values = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(values, min_size=1, max_size=4), st.booleans())
def test_every_value_has_a_place_and_few_numbers_are_beside_each_other(several, around):
    scale = scale_of(LINEAR, several, 10, 200, around=around)
    assert len(scale.numbers) <= 6
    numbers = [value for value, _ in scale.numbers]
    assert numbers == sorted(numbers)
    places = [scale.place(value) for value in several]
    assert all(10 - 1e-6 <= place <= 200 + 1e-6 for place in places)
    assert all(one <= other + 1e-6 for one, other in pairwise(scale.place(value) for value in sorted(several)))
    if numbers:
        assert len({text for _, text in scale.numbers}) == len(numbers)


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
def test_logarithmic_numbers_are_few_and_differ(one, other):
    scale = scale_of(LOGARITHMIC, [one, other], 10, 200)
    assert 2 <= len(scale.numbers) <= 6
    assert all(math.isfinite(scale.place(value)) for value in (one, other))


@pytest.mark.parametrize(
    ("value", "text"), [(1234.5, "1,234"), (0.123456, "0.1235"), (-2, "−2"), (1e-7, "1e−7"), (0, "0")]
)
def test_figures_have_four_digits_that_count(value, text):
    assert figure(value) == text


def test_an_axis_says_what_it_counts():
    assert Axis("context", "tokens").label == "context (tokens)"
    assert Axis("context", "tokens").words(4096) == "4,096 tokens"
    assert Axis("F1").words(0.25) == "F1 0.25"
