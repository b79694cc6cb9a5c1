"""When the metadata of a whole source confirm the sequence of its store, as a table of sequences and orders."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from oprag import Chunk, Span
from oprag.positions.insertion_order import Witness, agreed_order, confirmed_order


def confirmed(metadata: Sequence[Mapping[str, Any]], texts: Sequence[str]) -> Witness | None:
    chunks = [Chunk(text, rank, metadata=one) for rank, (one, text) in enumerate(zip(metadata, texts, strict=True))]
    return confirmed_order(chunks, (), [0] * (len(chunks) - 1))


ROMAN = ["i", "ii", "iii", "iv"]


def order_of(values: list[Any], field: str = "page_label", *, texts: list[str] | None = None, each: int = 2) -> Any:
    """The values in the confirmed order, each of them in several chunks; None if the sequence is not confirmed."""
    metadata = [{"source": "a", **({} if value is None else {field: value})} for value in values for _ in range(each)]
    found = confirmed(metadata, texts or [f"Text {number}." for number in range(len(metadata))])
    if found is None:
        return None
    assert found.field == field
    assert sorted(found.order) == list(range(len(metadata)))
    return [values[index // each] for index in found.order[::each]]


@pytest.mark.parametrize(
    "values",
    [
        ["1", "2", "3", "4"],
        ["1", "2", "5", "9"],  # pages without text
        [*ROMAN, "1", "2", "3"],
        ["T-1", *ROMAN, "1", "2", "3"],  # a title page
        ["Cover", *ROMAN, "1", "2", "3", "A-1", "A-2", "B-1"],
        [*ROMAN, "1", "2", "3", "1", "2", "1", "2", "3", "4"],  # several books in one
        ["1", "2", "3", "4", "1", "2", "3"],
        ["1", *ROMAN, "1", "2", "3"],
        ["5", "6", "7", "8", "9"],
        ["9", "10", "11"],
    ],
    ids=" ".join,
)
def test_labels_that_count_up_in_parts(values: list[str]):
    assert order_of(values) == values


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ("1 2 3 6 7 8 4 5", "1 2 3 4 5 6 7 8"),  # added later, into a gap
        ("1 2 5 6 1 2 3 3 4", None),  # the last part begins low, and has values of the first
        ("i ii 1 2 5 6 3", "i ii 1 2 3 5 6"),
    ],
)
def test_a_part_that_fills_a_gap_goes_there(values: str, order: str | None):
    found = order_of(values.split())
    assert found == (values if order is None else order).split()


@pytest.mark.parametrize(
    "values",
    [
        "1 1 1",  # one page
        "3 2 1",
        "2 3 4 1",  # the first page may have been added last, or begin another part
        "1 0 2",
        "3 4 1 2",
        "4 5 6 2 3",
        "1 2 3 4 5 6 7 8 9 3 4 5",
    ],
)
def test_values_that_do_not_confirm_the_sequence(values: str):
    assert order_of(values.split()) is None


def test_values_in_no_order_do_not_confirm_the_sequence():
    for seed in range(200):
        values = [str(number) for number in range(12)]
        random.Random(seed).shuffle(values)
        assert order_of(values, each=1) is None
        few = [random.Random(seed * 99 + one).randrange(3) for one in range(12)]
        assert few == sorted(few) or order_of(few, "order", each=1) is None


def test_files_of_one_name_are_not_parts_of_one_file():
    values = ["1", "2", "3", "1", "2", "3"]
    metadata = [{"file_name": "a", "page_label": value, "upload": at // 3} for at, value in enumerate(values)]
    assert confirmed(metadata, list("abcdef")) is None
    for one in metadata:
        del one["upload"]
    assert confirmed(metadata, list("abcdef")) is not None


@pytest.mark.parametrize(
    ("starts", "order"),
    [
        # A splitter that measures in words: some are missing, and one is that of an earlier repetition.
        ([0, 90, -1, 270, 360, 20, 540, -1, 720, 810], list(range(10))),
        # A chunk that was edited was added at the end.
        ([0, 90, 270, 360, 450, 540, 630, 180], [0, 1, 7, 2, 3, 4, 5, 6]),
        # On each page from 0 again.
        ([0, 90, 180, 0, 85, 0, 70, 160], list(range(8))),
        ([0, 90, 180, 90, 0, 300, 20, 10], None),
        ([0, 0, 0, 0, 0, 0], None),
        ([0, -1, -1, -1, -1, -1, 90, -1], None),
        # Seconds or fractions of the text are not offsets.
        ([0.5, 12.25, 0.5, 17.75], None),
    ],
    ids=str,
)
def test_offsets(starts: list[Any], order: list[int] | None):
    found = confirmed([{"start_index": start} for start in starts], [f"Text {n}." for n in range(len(starts))])
    assert (found and found.order) == order


def agreed(texts: list[str], starts: list[int]) -> list[int] | None:
    chunks = [Chunk(text, rank) for rank, text in enumerate(texts)]
    spans = [(start, start + len(text)) for start, text in zip(starts, texts, strict=True)]
    found = agreed_order(spans, chunks, offsets=True)
    return found and found.order


def test_an_offset_that_a_splitter_found_at_an_earlier_place_does_not_count():
    notice = "Note: read the safety rules."
    texts = [text for section in range(30) for text in (f"{notice}\n\nSection {section}", f"Text {section}.")]
    source = "\n\n".join([*texts, notice])
    assert agreed([*texts, notice], [source.find(text) for text in [*texts, notice]]) == list(range(61))


def test_a_chunk_amid_the_sequence_without_room_for_it_goes_where_its_offset_is():
    texts = [f"{number:090}" for number in range(10)]
    between = [0, 100, 900, *range(200, 900, 100)]
    assert agreed(texts, between) == [0, 1, *range(3, 10), 2]
    # With room, its offset is wrong.
    assert agreed(texts, [0, 100, 950, *range(300, 1000, 100)]) == list(range(10))


def test_offsets_that_count_from_several_documents_tell_nothing():
    chunks = [
        Chunk(f"Text {n}.", n, span=Span(start, start + 7), document_id=f"page {n}")
        for n, start in enumerate([712, 773, 799, 1765])
    ]
    assert confirmed_order(chunks, (), [0, 0, 0]) is None


def test_a_chunk_that_was_added_later_beside_one_without_a_value_is_not_placed_for_certain():
    starts = [0, 90, 180, 270, -1, 450, 540, 630, 360]
    found = confirmed([{"start_index": start} for start in starts], [f"Text {n}." for n in range(len(starts))])
    assert found is not None
    assert found.unsure == {8}


def test_numbers_of_a_page_and_numbers_of_several_calls():
    numbers = [0, 1, 2, 0, 1, 2, 3, 0, 1]
    assert order_of(numbers, "chunk_index", each=1) == numbers
    # Numbers that were written from the sequence itself prove nothing.
    metadata = [{"chunk_index": number, "chunk_numbering": "s0123456789ab"} for number in numbers]
    assert confirmed(metadata, [f"Text {n}." for n in range(9)]) is None


def test_two_texts_of_one_number_do_not_confirm_it():
    assert order_of([0, 0, 1, 1, 2, 2], "chunk_index", each=1) is None
    assert order_of([0, 0, 1, 1, 2, 2], "page", each=1) == [0, 0, 1, 1, 2, 2]
