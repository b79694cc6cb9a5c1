"""Slices of questions, against cases computed by hand."""

import numpy as np
import pytest

from oprag.compare.analysis.effects import slices_of
from oprag.compare.results import Results
from oprag.errors import OptionError
from tests.compare.analysis.matrices import made, results_of


def matrix_of(apart, about, *, documents=None):
    """Two orders, of which rank is ahead by so much in each question."""
    questions = [f"q{number}" for number in range(len(apart))]
    return results_of(
        made(dict.fromkeys(questions, 0.5), order="source"),
        made(dict(zip(questions, (0.5 + one for one in apart), strict=True)), order="rank"),
        about=dict(zip(questions, about, strict=True)),
        documents=documents,
    )


def test_each_slice_has_the_difference_of_its_questions_and_the_contrast_with_the_others():
    matrix = matrix_of([0.3, 0.1, 0.0, -0.1], [{"spread": value} for value in (True, True, False, False)])
    found = slices_of(matrix, "spread", "token_f1")
    assert [(one.value, one.questions) for one in found] == [(True, 2), (False, 2)]
    assert {(one.effect.value, one.effect.baseline) for one in found} == {("rank", "source")}
    assert [one.effect.difference.mean for one in found] == pytest.approx([0.2, -0.05])
    assert [one.contrast.mean for one in found] == pytest.approx([0.25, -0.25])
    assert found[0].effect.difference.comparisons == 2
    low, high = found[0].contrast.low, found[0].contrast.high
    assert low is not None
    assert high is not None
    # The least and the most that two questions of each slice can give.
    assert 0.1 <= round(low, 12) < 0.25 < round(high, 12) <= 0.4
    assert (found[1].contrast.low, found[1].contrast.high) == pytest.approx((-high, -low))


def test_a_contrast_draws_documents_whole():
    # In each document one question of each slice: their difference is the same, whatever is drawn.
    matrix = matrix_of(
        [0.3, 0.1] * 12,
        [{"type": value} for _ in range(12) for value in "ab"],
        documents={f"q{number}": f"d{number // 2}" for number in range(24)},
    )
    one, _ = slices_of(matrix, "type", "token_f1")
    assert (one.contrast.mean, one.contrast.low, one.contrast.high) == pytest.approx((0.2, 0.2, 0.2))


def test_numbers_with_many_values_are_halved_at_the_median():
    matrix = matrix_of(np.linspace(0, 1, 11).tolist(), [{"length": number} for number in range(11)])
    found = slices_of(matrix, "length", "token_f1")
    assert [(one.value, one.questions) for one in found] == [("up to 5", 6), ("more than 5", 5)]
    assert [one.effect.difference.mean for one in found] == pytest.approx([0.25, 0.8])


def test_few_numbers_are_values_from_small_to_large():
    matrix = matrix_of([0.1, 0.2, 0.3], [{"hops": number} for number in (3, 1, 2)])
    assert [one.value for one in slices_of(matrix, "hops", "token_f1")] == [1, 2, 3]


def test_questions_without_the_field_are_in_no_slice():
    matrix = matrix_of([0.1, 0.2, 0.9], [{"type": "a"}, {"type": "b"}, {}])
    one, other = slices_of(matrix, "type", "token_f1")
    assert (one.effect.difference.mean, other.effect.difference.mean) == pytest.approx((0.1, 0.2))
    assert one.contrast.mean == pytest.approx(-0.1)


def test_what_cannot_be_sliced_gives_nothing():
    many = matrix_of([0.1] * 9, [{"type": f"kind {number}", "always": True} for number in range(9)])
    assert slices_of(many, "type", "token_f1") == slices_of(many, "always", "token_f1") == []
    with pytest.raises(OptionError, match="did you mean 'type'"):
        slices_of(many, "tpye", "token_f1")


def test_results_slice_one_data_set():
    about = {"q0": {"type": "a"}, "q1": {"type": "b"}}
    cells = [made({"q0": 0.5, "q1": 0.4}, order=order) for order in ("source", "rank")]
    results = Results(results_of(*cells, about=about), "results.db")
    assert [one.value for one in results.slices("type")] == ["a", "b"]
    assert results.slices("type", axis="k") == []
    other = made({"q2": 0.5}, data="other")
    with pytest.raises(OptionError, match=r"several data sets .*slices\(\)"):
        Results(results_of(*cells, other, about=about), "results.db").slices("type")
