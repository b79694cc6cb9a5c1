"""Slices of questions, against cases computed by hand."""

import pytest

from oprag.compare.analysis.differences import slices_of
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


def test_each_slice_has_the_difference_of_its_questions():
    matrix = matrix_of([0.3, 0.1, 0.0, -0.1], [{"spread": value} for value in (True, True, False, False)])
    found = slices_of(matrix, "spread", "token_f1")
    (spread,), (close,) = found.values()
    assert [*found] == [True, False]
    assert {(one.value, one.baseline) for one in (spread, close)} == {("rank", "source")}
    assert [one.difference.n for one in (spread, close)] == [2, 2]
    assert [one.difference.mean for one in (spread, close)] == pytest.approx([0.2, -0.05])
    assert spread.difference.comparisons == 2


def test_questions_without_the_field_are_in_no_slice():
    matrix = matrix_of([0.1, 0.2, 0.9], [{"type": "a"}, {"type": "b"}, {}])
    (one,), (other,) = slices_of(matrix, "type", "token_f1").values()
    assert (one.difference.mean, other.difference.mean) == pytest.approx((0.1, 0.2))


def test_what_cannot_be_sliced_gives_nothing():
    many = matrix_of([0.1] * 9, [{"type": f"kind {number}", "always": True} for number in range(9)])
    assert slices_of(many, "type", "token_f1") == slices_of(many, "always", "token_f1") == {}
    with pytest.raises(OptionError, match="did you mean 'type'"):
        slices_of(many, "tpye", "token_f1")


def test_results_slice_one_data_set():
    about = {"q0": {"type": "a"}, "q1": {"type": "b"}}
    cells = [made({"q0": 0.5, "q1": 0.4}, order=order) for order in ("source", "rank")]
    results = Results(results_of(*cells, about=about), "results.db")
    assert [*results.slices("type")] == ["a", "b"]
    assert results.slices("type", axis="k") == {"a": [], "b": []}
    other = made({"q2": 0.5}, data="other")
    with pytest.raises(OptionError, match=r"several data sets .*slices\(\)"):
        Results(results_of(*cells, other, about=about), "results.db").slices("type")
