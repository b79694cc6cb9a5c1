import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.chunk import finite
from oprag.positions.values import comparable, label_keys, natural_key, ordinal, whole


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0),
        (9, 9),
        ("10", 10),
        (" 7\n", 7),
        ("007", 7),
        ("+4", 4),
        ("-0", 0),
        (2.0, 2),
        ("2.0", 2),
        (2.5, 2.5),
        (".5", 0.5),
        ("1e3", 1000),
        (10**30, 10**30),
        ("9" * 40, int("9" * 40)),
        (np.int64(3), 3),
        (np.uint8(3), 3),
        (np.float32(1.5), 1.5),
        (np.str_("12"), 12),
        (Decimal("2.50"), 2.5),
        (Fraction(1, 2), 0.5),
    ],
)
def test_numbers_and_numeric_strings_count(value, expected):
    assert ordinal(value) == expected


@pytest.mark.parametrize("value", [2.0, "2.0", "2e0", Decimal("2.0"), np.float64(2)])
def test_a_whole_number_is_an_int_whatever_a_store_made_of_it(value):
    assert type(ordinal(value)) is int


@pytest.mark.parametrize("value", [np.int64(2**53 + 1), np.uint64(2**53 + 1), Decimal(2**53 + 1)])
def test_large_whole_numbers_stay_distinct(value):
    # Times in nanoseconds are larger than what a float can tell apart.
    assert ordinal(value) == 2**53 + 1


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        np.bool_(True),
        -1,
        "-1",
        -0.5,
        float("nan"),
        float("inf"),
        float("-inf"),
        np.float32("nan"),
        "nan",
        "inf",
        "Infinity",
        "1e999",
        "",
        "  ",
        "iv",
        "1,5",
        "1_000",
        "0x10",
        "٣",
        "1 2",
        "9" * 5000,
        10**5000,
        -(10**5000),
        Decimal("NaN"),
        Decimal("sNaN"),
        Decimal("Infinity"),
        Decimal("1e5000"),
        Fraction(10**400),
        1 + 0j,
        b"1",
        [1],
        (1,),
        {"a": 1},
        np.array([1, 2]),
        object(),
    ],
    ids=itertools.count(),
)
def test_anything_else_does_not_count(value):
    assert ordinal(value) is None


@pytest.mark.parametrize(("value", "expected"), [(5, 5), ("5", 5), (5.0, 5), (2.5, None), (-1, None), ("x", None)])
def test_whole_takes_whole_numbers_alone(value, expected):
    assert whole(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("5", 5), (5.0, 5), (-1, "-1"), (None, "None"), ([1], "[1]"), (10**5000, "int")],
    ids=itertools.count(),
)
def test_anything_can_be_compared(value, expected):
    assert comparable(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(1, 1.0), (-0.5, -0.5), (np.float32(0.5), 0.5), (Fraction(1, 2), 0.5), (10**300, 1e300)]
)
def test_finite_numbers_are_scores(value, expected):
    assert finite(value) == expected


@pytest.mark.parametrize(
    "value", [None, True, "0.5", float("nan"), float("inf"), 10**400, 1j, [0.5]], ids=itertools.count()
)
def test_anything_else_is_no_score(value):
    assert finite(value) is None


def test_natural_sort_reads_runs_of_digits_as_numbers():
    names = ["doc10.pdf", "Doc2.pdf", "doc1.pdf", "doc1a.pdf", "doc01.pdf", "annex"]
    assert sorted(names, key=natural_key) == [
        "annex",
        "doc01.pdf",
        "doc1.pdf",
        "doc1a.pdf",
        "Doc2.pdf",
        "doc10.pdf",
    ]


def test_a_name_as_long_as_a_document_is_not_split_into_all_of_its_numbers():
    first, second = (f"{'1a' * 100_000}{end}" for end in "xy")
    assert len(natural_key(first)) < 300
    assert natural_key(first) < natural_key(second)


def test_a_string_that_is_too_long_is_no_page_label():
    fitting, long = "x" * 200, "x" * 201
    kept, ignored = label_keys([fitting, long], any_label=True)
    assert kept is not None
    assert ignored is None


def test_natural_sort_takes_runs_of_digits_of_any_length():
    long, longer = "v" + "9" * 5000, "v1" + "0" * 5000
    assert sorted([longer, long, "v2"], key=natural_key) == ["v2", long, longer]


@given(st.text(max_size=12), st.text(max_size=12))
def test_natural_keys_are_equal_for_equal_texts_alone_and_always_compare(first, second):
    one, other = natural_key(first), natural_key(second)
    assert (one == other) == (first == second)
    assert (one < other) + (other < one) + (one == other) == 1


def sorted_labels(labels: list[str], *, any_label: bool = True) -> list[str]:
    keys = dict(zip(labels, label_keys(labels, any_label=any_label), strict=True))
    return sorted((label for label in labels if keys[label] is not None), key=lambda label: keys[label] or ())


def test_roman_labels_come_before_numbers_and_other_labels_behind_them():
    labels = ["10", "A-10", "iv", "9", "i", "A-2", "ix", "1"]
    assert sorted_labels(labels) == ["i", "iv", "ix", "1", "9", "10", "A-2", "A-10"]


def test_letters_are_roman_only_where_all_letters_of_that_case_are():
    assert sorted_labels(["D", "C", "B", "A", "1"]) == ["1", "A", "B", "C", "D"]
    assert sorted_labels(["D", "C", "M", "1"]) == ["C", "D", "M", "1"]
    assert sorted_labels(["v", "B", "C", "1"]) == ["v", "1", "B", "C"]


@pytest.mark.parametrize("label", ["Iv", "iix", "iiii", "vx", "A", "page 3", "-"])
def test_what_is_no_roman_number_is_a_label(label):
    number, other = label_keys(["99", label], any_label=True)
    assert number is not None
    assert other is not None
    assert number < other


@pytest.mark.parametrize(
    "label", ["A", "A-1", "cover", "", " ", "-1", "1e999", None, True, -1, float("nan"), ["i"], {}]
)
def test_without_labels_only_numbers_and_roman_numbers_count(label):
    assert label_keys([label, "1", "i"], any_label=False)[0] is None


@pytest.mark.parametrize("label", ["", " ", "-1", "1e999", None, True, -1, float("nan"), ["i"], {}])
def test_some_values_are_not_even_labels(label):
    assert label_keys([label, "1"], any_label=True)[0] is None


def test_equal_pages_of_different_types_are_one():
    assert len(set(label_keys([3, "3", 3.0, " 3 ", "3.0"], any_label=False))) == 1


def as_roman(number: int) -> str:
    digits = ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"]
    tens = [digit.translate(str.maketrans("ivx", "xlc")) for digit in digits]
    hundreds = [digit.translate(str.maketrans("ivx", "cdm")) for digit in digits]
    return "m" * (number // 1000) + hundreds[number // 100 % 10] + tens[number // 10 % 10] + digits[number % 10]


@pytest.mark.parametrize("write", [str.lower, str.upper])
def test_every_roman_number_has_its_value(write):
    labels = [write(as_roman(number)) for number in range(1, 4000)]
    keys = label_keys(labels, any_label=False)
    assert keys == [(0, number) for number in range(1, 4000)]
