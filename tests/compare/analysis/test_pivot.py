"""Pivots: each cell counted again from the scores that were given."""

from statistics import fmean, median, stdev
from typing import Any

import pytest

from oprag.compare.analysis.pivot import PIVOT_VALUES
from oprag.errors import OptionError
from tests.compare.analysis.matrices import frame, made

FIRST = {"a": 0.0, "b": 0.5, "c": 1.0, "d": 0.9}
SECOND = {"a": 0.2, "b": 0.1, "c": 0.4, "d": 0.3}


def test_median_and_standard_deviation_over_questions():
    table = frame(made(FIRST, order="source"), made(SECOND, order="rank")).pivot("method", "order")
    assert (table.row_values, table.column_values) == (("stuff",), ("source", "rank"))
    assert table.texts() == [
        [f"{median(scores.values()):.3f} ± {stdev(scores.values()):.3f}" for scores in (FIRST, SECOND)]
    ]
    assert str(table).splitlines()[0] == "token_f1, median ± sd over questions"


@pytest.mark.parametrize("value", [value for value in PIVOT_VALUES if value != "mean [interval]"])
def test_no_interval_is_drawn_that_is_not_shown(value):
    (cell,) = frame(made(FIRST)).pivot("method", "order", value=value).cells.values()
    assert (cell.summary.low, cell.summary.high) == (None, None)


def test_means_have_the_intervals_of_the_table():
    both = frame(made(FIRST, k=2), made(SECOND, k=4))
    table = both.pivot("k", "order", value="mean [interval]")
    assert table.texts() == [
        [f"{row['token_f1']:.3f} [{row['token_f1_low']:.3f}, {row['token_f1_high']:.3f}]"] for row in both
    ]


@pytest.mark.parametrize(("value", "expected"), [("mean", "0.600"), ("median", "0.700"), ("n", "4")])
def test_single_figures(value, expected):
    both = frame(made(FIRST, k=2, order="source"), made(SECOND, k=None, order="rank"))
    shown = both.pivot("k", "order", value=value)
    assert shown.texts()[0] == [expected, "–"]
    assert (shown.row_values, shown.column_values) == ((2, None), ("source", "rank"))


def test_settings_with_the_same_two_values_are_averaged_question_by_question():
    cells = [made(scores, k=k, order=order) for k, scores in ((2, FIRST), (4, SECOND)) for order in ("source", "rank")]
    table = frame(*cells).pivot("method", "order")
    means = [fmean(pair) for pair in zip(FIRST.values(), SECOND.values(), strict=True)]
    cell = table.cells["stuff", "rank"]
    assert (cell.settings, cell.summary.n) == (2, 4)
    assert cell.summary.median == pytest.approx(median(means))
    assert cell.summary.standard_deviation == pytest.approx(stdev(means))
    assert "averaged over up to 2 settings per cell" in str(table)


def test_questions_that_lack_are_told_and_settings_that_failed_take_no_others_along():
    half = {**SECOND, "c": None, "d": None}
    table = frame(made(FIRST, k=2), made(half, k=4), made(dict.fromkeys(FIRST), k=8)).pivot("method", "order")
    cell = table.cells["stuff", "source"]
    assert (cell.settings, cell.lacking, cell.summary.n, cell.asked) == (2, 1, 2, 4)
    assert cell.summary.mean == pytest.approx(fmean([0.0, 0.5, 0.2, 0.1]))
    assert table.texts()[0][0].endswith(" (n=2, 2 of 3 settings)")


def test_a_setting_that_failed_wholly_is_told_where_others_stand_in_for_it():
    cells = [made(FIRST, k=2), made(SECOND, k=4), made(dict.fromkeys(FIRST), k=2, order="rank")]
    table = frame(*cells, made(SECOND, k=4, order="rank")).pivot("method", "order", value="mean")
    assert table.texts() == [["0.425", "0.250 (1 of 2 settings)"]]


def test_what_a_metric_says_nothing_of_lacks_nothing():
    both = frame(made(FIRST, k=2), made(FIRST, k=4, scored=False))
    assert both.pivot("method", "order", value="mean").texts() == [["0.600"]]


def test_several_data_sets_are_all_their_questions():
    other = {f"x{question}": score for question, score in SECOND.items()}
    table = frame(made(FIRST, data="one"), made(other, data="two")).pivot("method", "order")
    assert table.cells["stuff", "source"].summary.n == 8
    assert table.cells["stuff", "source"].asked == 8
    apart = frame(made(FIRST, data="one"), made(other, data="two")).pivot("method", "data", value="mean")
    assert apart.texts() == [["0.600", "0.250"]]


def test_what_an_axis_has_no_effect_on_stands_apart():
    table = frame(made(FIRST, k=2), made(SECOND, method="closed_book")).pivot("method", "k")
    assert table.column_values == (2, "–")
    assert table.texts() == [["0.700 ± 0.455", "–"], ["–", "0.250 ± 0.129"]]


def test_costs_are_pivoted_too():
    table = frame(made(FIRST, k=2, tokens=12_000), made(SECOND, k=4)).pivot("k", "order", "tokens", value="mean")
    assert table.texts() == [["12,003"], ["13.0"]]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"rows": "methd"}, "unknown axis 'methd'; did you mean 'method'"),
        ({"rows": "seed"}, "averaged"),
        ({"rows": "order"}, "different axes"),
        ({"metric": "f1"}, "unknown metric 'f1'; use one of token_f1, tokens"),
        ({"metric": "seconds"}, "were not measured"),
        ({"value": "max"}, "value must be one of median ± sd"),
    ],
)
def test_what_cannot_be_pivoted_is_refused(asked, message):
    with pytest.raises(OptionError, match=message):
        frame(made(FIRST)).pivot(**{"rows": "method", "columns": "order", **asked})


def test_every_value_is_shown():
    whole = frame(made(FIRST), made({"a": 0.5}, order="rank"))
    texts = {value: whole.pivot("method", "order", value=value).texts()[0] for value in PIVOT_VALUES}
    assert texts["n"] == ["4", "1"]
    # Neither an interval nor a spread comes of one question.
    assert texts["mean [interval]"][1] == texts["median ± sd"][1] == "0.500 (n=1)"


def test_questions_of_one_document_make_a_wider_interval():
    scores = {str(number): 0.1 * (number // 8) + number / 1_000 for number in range(40)}
    by_document = {question: int(question) // 8 for question in scores}
    found: list[Any] = []
    for clusters in (None, by_document):
        table = frame(made(scores, asked=40), clusters=clusters).pivot("k", "order", value="mean [interval]")
        (cell,) = table.cells.values()
        found.append(cell.summary)
    alone, together = found
    assert (alone.units, together.units) == (40, 5)
    assert together.high - together.low > 1.5 * (alone.high - alone.low)
