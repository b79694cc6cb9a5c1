"""Settings in a few figures: each number of them counted again from what was asked and scored."""

from statistics import fmean, median, stdev
from typing import Any

import pytest

from oprag.compare.meter import Measurement
from tests.compare.analysis.matrices import frame, made


def test_the_numbers_of_a_row():
    scores = {"a": 0.0, "b": 0.5, "c": 1.0}
    (row,) = frame(made(scores, asked=4)).settings
    summary: Any = row.scores["token_f1"]
    assert (summary.n, summary.mean, summary.median) == (3, fmean(scores.values()), median(scores.values()))
    assert summary.standard_deviation == pytest.approx(stdev(scores.values()))
    assert summary.low < summary.mean < summary.high
    assert (row.asked, row.answered, row.failed, row.remaining) == (4, 3, 0, 1)
    assert row.per_answer == {
        "calls": 2,
        "input_tokens": 10,
        "output_tokens": 3,
        "cached_tokens": 1,
        "embedded_tokens": 5,
    }


def test_measurements_are_those_of_the_measured_answers_of_all_cells():
    first = {"a": Measurement(1.0, 0.5, 100.0), "b": Measurement(4.0, 4.0, 130.0)}
    scores = {"a": 1.0, "b": 1.0, "c": 1.0}
    measured, other = frame(
        made(scores, order="random", seed=1, measured=first),
        made(scores, order="random", seed=2, measured={"a": Measurement(2.0, 3.0, 110.0)}),
        made(scores, order="source"),
    ).settings
    assert (measured.measured, measured.answered) == (3, 6)
    taken = {name: (one.n, one.median, one.low) for name, one in measured.measurements.items()}
    medians = {"seconds": 2.0, "cpu_seconds": 3.0, "cpu_percent": 100.0, "peak_memory_mib": 110.0}
    assert taken == {name: (3, value, None) for name, value in medians.items()}
    assert measured.measurements["seconds"].standard_deviation == pytest.approx(stdev([1.0, 4.0, 2.0]))
    assert measured.cost("seconds") == pytest.approx(7 / 3)
    # Paired values are those of questions that were measured in all cells.
    assert measured.by_question("seconds").tolist()[0] == 1.5
    assert (other.measured, other.measurements, other.cost("seconds")) == (0, {}, None)


def test_a_failure_is_counted_and_has_no_part_in_a_mean():
    (row,) = frame(made({"a": 1.0, "b": None, "c": 1.0, "d": None}, tokens=7)).settings
    assert (row.answered, row.failed, row.remaining) == (2, 2, 0)
    assert (row.scores["token_f1"].n, row.scores["token_f1"].mean) == (2, 1.0)
    assert row.per_answer["input_tokens"] == 7


def test_seeds_are_averaged_for_each_question_first():
    cells = [
        made({"a": 0.0, "b": 1.0}, asked=2, order="random", seed=1),
        made({"a": 1.0, "b": 0.0}, asked=2, order="random", seed=2),
    ]
    (row,) = frame(*cells).settings
    summary = row.scores["token_f1"]
    assert (row.cells, row.asked, row.answered) == (2, 4, 4)
    # Four scores that differ, and two questions that do not.
    assert (summary.n, summary.mean, summary.low, summary.high) == (2, 0.5, 0.5, 0.5)
