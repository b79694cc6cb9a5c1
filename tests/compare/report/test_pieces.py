"""Chunk maps and the words of values."""

import re

import numpy as np
import pytest

pytest.importorskip("jinja2")

from oprag.compare.analysis.settings import amount, difference_text, listed, money_text, named, value_text
from oprag.compare.report.page import Section, Table
from oprag.compare.report.questions import chunk_map
from oprag.compare.report.write import page
from oprag.compare.stats import paired_difference


def boxes(svg, kind):
    """Left end, top and width of each box of a map."""
    (path,) = re.findall(rf'class="{kind}" d="(.*?)"', svg)
    return [(int(left), float(top), int(width)) for left, top, width in re.findall(r"M(\d+) ([\d.]+)h(\d+)v", path)]


def test_a_map_shows_where_chunks_are_and_in_which_order_they_are_read():
    svg = chunk_map([(300, 400), (0, 50), (50, 100)], [(320, 340)], 600)
    lines = boxes(svg, "kept")
    assert [(left, width) for left, _, width in lines] == [(300, 100), (0, 50), (50, 50)]
    tops = [top for _, top, _ in lines]
    assert tops == sorted(tops)
    assert [(left, width) for left, _, width in boxes(svg, "gold")] == [(320, 20)]
    assert 'aria-label="3 chunks in the order of the context, which goes back 1 times"' in svg


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
    assert listed([*"abcdefg"]) == "a, b, c, d, e and 2 more"


def test_rows_that_are_not_shown_are_counted():
    rows = [(f"row {number}", str(number)) for number in range(1_203)]
    for shown in (1, 1_203):
        html = page("Results", [Section("one", "One", [Table("All", ("name", "score"), rows, max_rows=shown)])])
        assert html.count("row ") == shown
        assert ("1,202 more rows" in html) == (shown == 1)
