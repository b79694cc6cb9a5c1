import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk
from oprag.cli.document_map import KEPT, Cell, DocumentMap, Mark, Row, map_of, strip
from tests.cli.document_map.helpers import chunk, context_of


def cells(*chunks, length=100, width=10, **options):
    chart = map_of(context_of(*chunks, **options), {"book": length})
    return strip(chart.rows[0], chart.states, width)


NOTHING = Cell("", half=False)


def test_each_cell_says_what_stands_there():
    found = cells(chunk(0, 20, 40), chunk(1, 60, 63), chunk(2, 80, 100), k=2)
    whole, part, dropped = Cell(KEPT, half=True), Cell(KEPT, half=False), Cell("k", half=True)
    assert found == [NOTHING, NOTHING, whole, whole, NOTHING, NOTHING, part, NOTHING, dropped, dropped]


def test_anything_kept_shows_before_anything_dropped():
    assert cells(chunk(0, 0, 2), chunk(1, 2, 10), k=1, length=10, width=1) == [Cell(KEPT, half=False)]


def test_of_several_reasons_the_one_for_most_shows():
    found = cells(chunk(0, 0, 5), chunk(1, 20, 24), chunk(2, 30, 50), k=1, max_candidates=2, length=100, width=2)
    assert found == [Cell(KEPT, half=False), NOTHING]
    found = cells(chunk(0, 90, 100), chunk(1, 20, 24), chunk(2, 30, 50), k=1, max_candidates=2, length=100, width=2)
    assert found == [Cell("max_candidates", half=False), Cell(KEPT, half=False)]


@pytest.mark.parametrize("length", [1, 3, 9, 10])
def test_a_short_source_fills_the_strip(length):
    assert cells(chunk(0, 0, length), length=length, width=10) == [Cell(KEPT, half=True)] * 10


def test_a_source_without_text_is_an_empty_strip():
    assert cells(length=0) == [NOTHING] * 10


@given(st.integers(1, 300), st.integers(1, 80), st.data())
def test_nothing_that_was_kept_gets_lost(length, width, data):
    start = data.draw(st.integers(0, length - 1))
    end = data.draw(st.integers(start + 1, length))
    found = cells(chunk(0, start, end), length=length, width=width)
    assert len(found) == width
    for number, cell in enumerate(found):
        first, last = number * length / width, (number + 1) * length / width
        if start <= first and last <= end:
            assert cell.state == KEPT
        if cell.state == KEPT:
            assert first - 1 <= end
            assert start <= last + 1
    assert any(cell.state == KEPT for cell in found)


def test_a_source_of_any_length_takes_no_memory():
    length = 10**15
    places = [(0, length // 5, KEPT), (length // 10, 2 * length, "k"), (length // 2, length // 3, KEPT)]
    row = Row("book", length, (), tuple(Mark(*place[:2], Chunk("", 0), place[2]) for place in places))
    assert strip(row, (KEPT, "k"), 5) == [Cell(KEPT, half=True), *[Cell("k", half=True)] * 4]
    assert DocumentMap((row,), {KEPT: 1, "k": 1}, 0).covered() == {"": 0, KEPT: length // 5, "k": 4 * length // 5}
