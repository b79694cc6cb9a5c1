import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.report.charts import ChartAxis, figure, pixels, scale_of


def texts(values, *, logarithmic=False):
    return [text for _, text in scale_of(values, 0, 100, logarithmic=logarithmic).numbers]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0, 1], ["0.0", "0.5", "1.0"]),
        ([0.31, 0.47], ["0.30", "0.35", "0.40", "0.45", "0.50"]),
        ([-1, 1], ["-1.0", "-0.5", "0.0", "0.5", "1.0"]),
        ([0, 4000], ["0", "1,000", "2,000", "3,000", "4,000"]),
        ([971, 7518], ["0", "2,000", "4,000", "6,000", "8,000"]),
        ([0, 48_000], ["0", "20,000", "40,000", "60,000"]),
        ([0, 4e-7], ["0.0000000", "0.0000001", "0.0000002", "0.0000003", "0.0000004"]),
        ([3, 3], ["1", "2", "3", "4", "5"]),
        ([0, 0], ["-0.5", "0.0", "0.5"]),
        ([-5e-324, 0, 5e-324], ["-0.5", "0.0", "0.5"]),
        # But for the rounding of a sum these are one value.
        ([0.1 + 0.2, 0.3], ["0.1", "0.2", "0.3", "0.4", "0.5"]),
        ([0, 1e-17], ["-0.5", "0.0", "0.5"]),
    ],
)
def test_linear_numbers(values, expected):
    assert texts(values) == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1000, 48_000], ["1,000", "2,000", "5,000", "10,000", "20,000"]),
        ([4, 128], ["5", "10", "20", "50", "100"]),
        ([0.5, 60_000], ["1", "10", "100", "1,000", "10,000"]),
        ([1e-4, 1e6], ["0.0001", "0.01", "1", "100", "10,000", "1,000,000"]),
        ([3, 4], ["3", "4"]),
        ([8, 8], ["5", "10"]),
    ],
)
def test_logarithmic_numbers(values, expected):
    assert texts(values, logarithmic=True) == expected


def test_a_scale_goes_on_to_the_next_numbers_around():
    scale = scale_of([0.31, 0.47], 200, 8)
    assert (scale.place(0.3), scale.place(0.5)) == pytest.approx((200, 8))
    assert scale.place(0.4) == pytest.approx(104)


values = st.floats(-1e9, 1e9)


@given(st.lists(values, min_size=1, max_size=4))
def test_every_value_has_a_place_and_few_numbers_are_beside_each_other(several):
    scale = scale_of(several, 10, 200)
    numbers = [value for value, _ in scale.numbers]
    assert 2 <= len(numbers) <= 6
    assert numbers == sorted(numbers)
    places = [scale.place(value) for value in several]
    assert all(10 - 1e-6 <= place <= 200 + 1e-6 for place in places)
    assert all(one <= other + 1e-6 for one, other in pairwise(scale.place(value) for value in sorted(several)))
    assert len({text for _, text in scale.numbers}) == len(numbers)


@given(st.floats(1e-9, 1e12), st.floats(1e-9, 1e12))
def test_logarithmic_numbers_are_few_and_differ(one, other):
    scale = scale_of([one, other], 10, 200, logarithmic=True)
    assert 2 <= len(scale.numbers) <= 6
    assert all(math.isfinite(scale.place(value)) for value in (one, other))


@pytest.mark.parametrize(
    ("value", "text"), [(1234.5, "1,234"), (0.123456, "0.1235"), (-2, "-2"), (1e-7, "1e-07"), (0, "0")]
)
def test_figures_have_four_digits_that_count(value, text):
    assert figure(value) == text


def test_an_axis_says_what_it_counts():
    assert ChartAxis("context", "tokens").label == "context (tokens)"
    assert ChartAxis("context", "tokens").words(4096) == "4,096 tokens"
    assert ChartAxis("F1").words(0.25) == "F1 0.25"


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (3.14159, "3.1"), (-0.04, "0"), (-2.06, "-2.1"), (1e6, "1000000")]
)
def test_pixels_have_at_most_one_decimal(value, text):
    assert pixels(value) == text
