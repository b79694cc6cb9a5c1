from dataclasses import replace

import pytest

from oprag import Chunk, Drop
from oprag.cli.document_map import KEPT, map_of
from tests.cli.document_map.helpers import chunk, context_of


def places(row):
    return [(mark.start, mark.end, mark.state, mark.chunk.rank) for mark in row.marks]


def test_kept_and_dropped_chunks_have_their_place():
    chart = map_of(context_of(chunk(0, 50, 60), chunk(1, 10, 20), chunk(2, 0, 10), k=2), {"book": 100})
    (row,) = chart.rows
    assert (row.source, row.length, row.pages) == ("book", 100, ())
    assert places(row) == [(50, 60, KEPT, 0), (10, 20, KEPT, 1), (0, 10, "k", 2)]
    assert row.marks[2].detail == "behind the first 2"
    assert chart.counts == {KEPT: 2, "k": 1}
    assert chart.covered() == {"": 70, KEPT: 20, "k": 10}
    assert (chart.length, chart.unplaced) == (100, 0)


def test_a_row_for_each_source_in_the_given_sequence():
    context = context_of(chunk(0, 0, 30, source="b"), chunk(1, 5, 30, source="a"))
    chart = map_of(context, {"c": 10, "a": 40, "b": 30})
    assert [row.source for row in chart.rows] == ["c", "a", "b"]
    assert [len(row.marks) for row in chart.rows] == [0, 1, 1]
    assert chart.covered() == {"": 25, KEPT: 55}


def test_pages_stand_behind_each_other():
    context = context_of(chunk(0, 0, 20, page=3), chunk(1, 5, 30, page=1), chunk(2, 30, 50, page=3))
    (row,) = map_of(context, {"book": [40, 0, 50]}).rows
    assert row.pages == (0, 40, 40)
    assert row.length == 90
    assert places(row) == [(40, 60, KEPT, 0), (5, 30, KEPT, 1), (70, 90, KEPT, 2)]


@pytest.mark.parametrize(
    "given",
    [
        chunk(1, 0, 20, source="elsewhere"),
        chunk(1, 200, 220),
        chunk(1, 0, 20, page=4),
        Chunk("no offset at all", 1, metadata={"source": "book"}),
    ],
)
@pytest.mark.filterwarnings("ignore::oprag.PositionWarning")
def test_what_has_no_place_is_counted(given):
    chart = map_of(context_of(chunk(0, 0, 20, page=1), given), {"book": [100, 50]})
    assert chart.unplaced == 1
    assert chart.counts == {KEPT: 2}


def test_a_source_that_the_caller_named_otherwise_is_found_by_the_metadata():
    chart = map_of(context_of(chunk(0, 0, 20), source_key=lambda _: "chapter 1"), {"book": 100})
    assert len(chart.rows[0].marks) == 1


def test_a_chunk_that_is_longer_than_its_source_ends_with_it():
    (row,) = map_of(context_of(chunk(0, 90, 130)), {"book": 100}).rows
    assert places(row) == [(90, 100, KEPT, 0)]


def test_reasons_come_in_the_sequence_of_the_assembly_and_unknown_ones_behind():
    context = context_of(*(chunk(n, 20 * n, 20 * n + 20) for n in range(6)))
    reasons = ["token_budget", "zebra", "max_candidates", "apple", "k"]
    dropped = tuple(Drop(one, reason, None, "") for one, reason in zip(context.kept, reasons, strict=False))  # type: ignore[arg-type]
    chart = map_of(replace(context, kept=context.kept[5:], dropped=dropped), {"book": 200})
    assert chart.states == (KEPT, "max_candidates", "k", "token_budget", "apple", "zebra")


def test_where_chunks_overlap_the_kept_one_counts():
    chart = map_of(context_of(chunk(0, 50, 90), chunk(1, 20, 60), k=1), {"book": 100})
    assert chart.covered() == {"": 30, KEPT: 40, "k": 30}


def test_nothing_retrieved():
    chart = map_of(context_of(), {"book": 10, "empty": 0})
    assert chart.counts == {KEPT: 0}
    assert chart.covered() == {"": 10, KEPT: 0}
