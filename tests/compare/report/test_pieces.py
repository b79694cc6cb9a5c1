"""Chunk maps, the two contexts of a question, the words of values, and charts of lengths."""

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jinja2")

from oprag.compare.analysis.wording import (
    amount,
    difference_text,
    listed,
    money_text,
    name_of,
    named,
    value_text,
)
from oprag.compare.db.records import ChunkRecord
from oprag.compare.report.contexts import CellName, DocumentLine, chosen, chunk_map
from oprag.compare.report.lengths import length_chart
from oprag.compare.stats.difference import paired_difference
from tests.compare.analysis.matrices import made
from tests.compare.analysis.test_curves import spots


def box(path):
    """Left end and width of each box of a path."""
    return [(int(left), int(width)) for left, width in re.findall(r"M(\d+) [\d.]+h(\d+)v", path)]


def test_a_map_shows_where_chunks_are_and_in_which_order_they_are_read():
    line = DocumentLine.of({("a", None): 600}, ["a"])
    kept = [ChunkRecord("a", None, 300, 400, 1), ChunkRecord("a", None, 0, 100, 1)]
    found = chunk_map(line, kept, [ChunkRecord("a", None, 500, 600, 1)], [("a", 320, 340)])
    assert box(found.kept) == [(0, 100), (300, 100)]
    assert box(found.dropped) == [(500, 100)]
    assert box(found.gold) == [(320, 20)]
    assert box(found.order) == [(300, 100), (0, 100)]
    tops = [float(top) for top in re.findall(r"M\d+ ([\d.]+)h", found.order)]
    assert tops == sorted(tops)
    assert found.label.startswith("2 kept chunks in 600 characters")
    assert "1 times the next chunk" in found.label


def test_documents_and_pages_stand_behind_each_other_as_in_whole_texts():
    line = DocumentLine.of({("a", None): 10, ("b", 1): 20, ("b", 2): 30}, ["b", "a"])
    assert line.starts == {("b", 1): 0, ("b", 2): 22, ("b", None): 0, ("a", None): 54}
    assert line.span(ChunkRecord("b", 2, 5, 9, 1)) == (27, 31)
    assert line.span(ChunkRecord("a", None, 0, 10, 1)) == (54, 64)
    assert line.span(ChunkRecord("c", None, 0, 10, 1)) is None
    assert line.length == 64


def test_a_map_of_nothing_is_empty():
    for line in (DocumentLine.of({("a", None): 0}, ["a"]), DocumentLine.of({}, [])):
        found = chunk_map(line, [], [], [])
        assert (found.kept, found.dropped, found.gold, found.order) == ("", "", "", "")


def test_of_contexts_those_with_scores_are_shown():
    cells = [CellName(0, name, name, {"order": name}) for name in ("source", "rank", "reverse_rank")]
    answers: Any = {cell.key: SimpleNamespace(context=str(number)) for number, cell in enumerate(cells)}
    scores = {"source": 0.3, "rank": 0.5}
    assert [cell.key for cell in chosen(cells, answers, scores)] == ["source", "rank"]
    assert [cell.key for cell in chosen(cells, answers, {"reverse_rank": -0.5, "rank": -4.0})] == [
        "rank",
        "reverse_rank",
    ]
    assert len(chosen(cells, answers, {})) == 2


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


def test_differences_money_and_lists_are_short():
    side = np.tile([0.0, 1.0], 10)
    assert difference_text(paired_difference(side, side)) == "+0.000 [+0.000, +0.000]"
    assert difference_text(paired_difference(side[:1], side[1:2])) == "-1.000"
    assert difference_text(paired_difference(side[:0], side[:0])) == "–"
    values = (None, 0.0, 0.000431, 0.0000004321, 0.5, 12.345, 1234.5)
    shown = ["–", "0.00", "0.00043", "0.00000043", "0.50", "12.35", "1,234.50"]
    assert [money_text(value) for value in values] == shown
    assert [listed(["a", "b", "c"][:count]) for count in (0, 1, 2, 3)] == ["", "a", "a and b", "a, b and c"]
    assert name_of({"k": 4, "method": "stuff"}, ["order"]) == "stuff"


def test_a_length_that_is_not_known_is_not_drawn():
    (curve,) = spots(*(made({"a": 0.1 * number, "b": 0.2}, k=k) for number, k in enumerate((8, None, 64))))
    figure = length_chart([curve], "token_f1", "")
    assert figure.x == "k"
    assert re.findall(r"k ([\d,]+)\n", figure.svg) == ["8", "64"]
