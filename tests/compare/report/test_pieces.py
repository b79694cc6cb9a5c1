"""Partners, chunk maps and the words for differences."""

import re
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("jinja2")

from oprag.compare.analysis.differences import SettingDifference
from oprag.compare.analysis.settings import Setting
from oprag.compare.analysis.wording import amount, change, named, value_text
from oprag.compare.db.records import AnswerText, Piece
from oprag.compare.report.chunk_map import Line, chunk_map
from oprag.compare.report.comparisons import claim
from oprag.compare.report.curves import _chart
from oprag.compare.report.overview import _of_axis
from oprag.compare.report.sides import CellName, chosen
from oprag.compare.stats.difference import paired_difference
from tests.compare.analysis.matrices import made
from tests.compare.analysis.test_curves import spots


def box(path):
    """Left end and width of each box of a path."""
    return [(int(left), int(width)) for left, width in re.findall(r"M(\d+) [\d.]+h(\d+)v", path)]


def test_a_map_shows_where_chunks_are_and_in_which_order_they_are_read():
    line = Line.of({("a", None): 600}, ["a"])
    kept = [Piece("a", None, 300, 400, 1), Piece("a", None, 0, 100, 1)]
    found = chunk_map(line, kept, [Piece("a", None, 500, 600, 1)], [("a", 320, 340)])
    assert box(found.kept) == [(0, 100), (300, 100)]
    assert box(found.dropped) == [(500, 100)]
    assert box(found.gold) == [(320, 20)]
    assert box(found.order) == [(300, 100), (0, 100)]
    tops = [float(top) for top in re.findall(r"M\d+ ([\d.]+)h", found.order)]
    assert tops == sorted(tops)
    assert found.label.startswith("2 kept chunks along 600 characters")
    assert "1 times the next chunk" in found.label


def test_documents_and_pages_stand_behind_each_other_as_in_whole_texts():
    line = Line.of({("a", None): 10, ("b", 1): 20, ("b", 2): 30}, ["b", "a"])
    assert line.starts == {("b", 1): 0, ("b", 2): 22, ("b", None): 0, ("a", None): 54}
    assert line.span(Piece("b", 2, 5, 9, 1)) == (27, 31)
    assert line.span(Piece("a", None, 0, 10, 1)) == (54, 64)
    assert line.span(Piece("c", None, 0, 10, 1)) is None
    assert line.length == 64


def test_a_map_of_nothing_is_empty():
    for line in (Line.of({("a", None): 0}, ["a"]), Line.of({}, [])):
        found = chunk_map(line, [], [], [])
        assert (found.kept, found.dropped, found.gold, found.order) == ("", "", "", "")


def difference(values, adjusted_p):
    found = paired_difference(np.array(values), np.zeros(len(values)))
    return SettingDifference(
        metric="token_f1",
        axis="order",
        setting=Setting({"order": "rank"}, (1,)),
        baseline=Setting({"order": "source"}, (0,)),
        difference=replace(found, adjusted_p=adjusted_p),
    )


def test_only_questions_that_are_all_the_same_are_said_to_be():
    assert claim(difference([0.0] * 5, 1.0)) == "The same score in every question."
    # In each of the documents they cancel.
    side = np.tile([0.0, 1.0], 10)
    found = paired_difference(side, 1 - side, np.arange(20) // 2)
    assert (found.mean, found.low, found.high, found.differing) == (0, 0, 0, 20)
    assert claim(replace(difference([0.0] * 5, 1.0), difference=replace(found, adjusted_p=1.0))).startswith(
        "No difference can be claimed."
    )


def test_the_claims_of_an_axis_are_counted():
    better, worse, neither = difference([0.5] * 20, 0.001), difference([-0.5] * 20, 0.001), difference([0.1, 0], 1.0)
    assert _of_axis("order", [neither]) == "order: no difference from source can be claimed, in 1 comparison."
    same = difference([0.0] * 20, None)
    assert (
        _of_axis("order", [same, same]) == "order: the same score as with source in every question, in 2 comparisons."
    )
    assert _of_axis("order", [better, better]).endswith("2 are shown to score higher and none lower.")
    assert _of_axis("order", [better, worse, neither]).endswith(
        "of 3 comparisons with source, 1 is shown to score higher and 1 lower; of 1 nothing can be claimed."
    )


def test_one_question_has_no_interval_that_could_be_too_narrow():
    assert claim(difference([0.5], 1.0)) == "No difference can be claimed. 1 to draw from is too few for an interval."


def test_of_contexts_those_with_scores_are_shown():
    cells = [CellName(name, name, {"order": name}) for name in ("source", "rank", "reverse_rank")]
    answers = {cell.key: AnswerText(0, 0, "", 0, None, (), None, str(number)) for number, cell in enumerate(cells)}
    likelihoods = {"source": -3.0, "rank": -0.5}
    assert [cell.key for cell in chosen(cells, answers, likelihoods)] == ["source", "rank"]
    assert [cell.key for cell in chosen(cells, answers, {"reverse_rank": -0.5, "rank": -4.0})] == [
        "rank",
        "reverse_rank",
    ]
    assert len(chosen(cells, answers, {})) == 2


def test_what_a_difference_shows_is_said_in_words():
    better = difference([0.5, 0.6, 0.4, 0.5] * 5, 0.001)
    assert better.difference.shown
    assert claim(better) == "With rank token_f1 is higher than with source."
    assert claim(difference([-0.5, -0.6] * 10, 0.04)) == "With rank token_f1 is lower than with source."
    chance = difference([0.5, 0.6, 0.4, 0.5] * 5, 0.2)
    assert not chance.difference.shown
    assert "may be chance" in claim(chance)
    assert claim(difference([0.5, -0.4] * 10, 1.0)) == "No difference can be claimed."
    assert claim(difference([0.0] * 12, 1.0)) == "The same score in every question."
    assert claim(difference([], None)) == "No question has a score in both."
    assert claim(difference([0.5, -0.4, 0.1], 1.0)).endswith("With 3 to draw from the interval is too narrow.")


def test_values_and_numbers_are_short():
    assert [value_text(value) for value in (None, True, "rank", " ", 1000, 0.5)] == [
        "none",
        "yes",
        "rank",
        "' '",
        "1,000",
        "0.5",
    ]
    assert named({"k": 4, "order": "rank", "method": "stuff"}, ["order", "k", "method", "seed"]) == "stuff, rank, k=4"
    assert [amount(value) for value in (None, 0, 0.1234, 12.34, 1234.5)] == ["–", "0", "0.123", "12.3", "1,234"]
    assert [change(*pair) for pair in ((100, 90), (0, 1), (None, 1), (-1, -2))] == ["-10.0 %", "–", "–", "-100.0 %"]


def test_a_length_that_is_not_known_is_not_drawn():
    (spot,) = spots(*(made({"a": 0.1 * number, "b": 0.2}, k=k) for number, k in enumerate((8, None, 64))))
    figure = _chart("k", "", [spot])
    assert figure.notes[0] == "k: 8, 64, none; without a limit the length is not known, so it is not drawn."
    assert re.findall(r"([\d,]+) chunks", figure.svg) == ["8", "64"]
