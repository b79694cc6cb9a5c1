"""What is written into a store: which positions are found for all of its chunks, and what the report says."""

import random
import warnings
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from oprag import Chunk, PositionKind
from oprag._internal.warn import forget
from oprag.errors import SourceWarning
from oprag.positions.source_order import (
    ADDED_AGAIN,
    INSERTION_ORDER_ONLY,
    MISSING,
    RESTARTED,
    SHARED_POSITION,
    TORN_APART,
    UNLINKED_RUNS,
    Listing,
    order_of,
)
from oprag.stores import StoreAdapter, StoredChunk
from oprag.stores.positions import plan_positions, write_into
from tests.helpers import prose

TEXT = prose(700, seed=3)
NO_OFFSETS = {"chunk_index", "chunk_numbering"}
NOT_FOUND = "1 chunk not found in its text, or at several places"


def windows(text=TEXT, size=200, overlap=40):
    return [text[start : start + size] for start in range(0, len(text) - overlap, size - overlap)]


def stored(texts, source="book", **metadata):
    """The chunks of a source as a store lists them."""
    return chunks_of([(text, {"source": source, **metadata}) for text in texts])


def chunks_of(rows):
    return [Chunk(text, rank, metadata=metadata, id=f"id {rank}") for rank, (text, metadata) in enumerate(rows)]


def plan(chunks, read_source=None, *, in_sequence=True, trusted=False, source_key=None, dry_run=False):
    if isinstance(read_source, str):
        text = read_source
        read_source = lambda _: text  # noqa: E731
    return plan_positions(
        Listing(chunks, in_sequence, complete=True, store="Store"),
        read_source,
        trusted=trusted,
        source_key=source_key,
        dry_run=dry_run,
    )


def after(chunks, written):
    """The chunks with what was written."""
    return [replace(chunk, metadata={**chunk.metadata, **written.added.get(chunk.id, {})}) for chunk in chunks]


def certainty(chunks, written):
    """How certain the order of chunks is to a search that finds them afterwards."""
    return order_of(Listing(after(chunks, written))).certainty


def numbers(written, chunks):
    return [written.added.get(chunk.id, {}).get("chunk_index") for chunk in chunks]


def shuffled(chunks):
    ranks = random.Random(1).sample(range(len(chunks)), len(chunks))
    return [replace(chunks[rank], rank=place) for place, rank in enumerate(ranks)]


def one(written):
    (source,) = written.sources
    return source


# How positions are found.


def test_the_sequence_of_the_store():
    chunks = stored(windows())
    written = plan(chunks)
    count = len(chunks)
    assert numbers(written, chunks) == list(range(count))
    assert {frozenset(more) for more in written.added.values()} == {frozenset(NO_OFFSETS)}
    field = f"Store, {count - 1} of {count - 1} neighbors overlap"
    assert one(written) == ("book", count, count, PositionKind.STORE, field, "")
    assert certainty(chunks, written) == "assumed"
    again = plan(after(chunks, written))
    assert (again.sources, again.known, again.added) == ((), 1, {})


def test_a_sequence_that_texts_do_not_confirm_is_written_where_it_is_trusted():
    chunks = stored(windows(overlap=0))
    untrusted = plan(chunks)
    assert untrusted.added == {}
    assert one(untrusted).note == (
        f"{INSERTION_ORDER_ONLY}; nothing is written without its text (read_source=...) or trust_store_order=True"
    )
    written = plan(chunks, trusted=True)
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert one(written).note == INSERTION_ORDER_ONLY


def test_a_sequence_that_texts_contradict_is_not_written_even_if_it_is_trusted():
    written = plan(shuffled(stored([*windows(), "Added later.", "Another."])), trusted=True)
    assert written.added == {}
    assert one(written).note == f"{TORN_APART}; nothing is written"


def test_the_text_of_the_source():
    chunks = stored(windows())
    written = plan(shuffled(chunks), TEXT)
    assert one(written)[2:] == (len(chunks), PositionKind.OFFSET, "text of the source", "")
    assert numbers(written, chunks) == list(range(len(chunks)))
    for chunk in chunks:
        more = written.added[chunk.id]
        assert TEXT[more["start_index"] : more["end_index"]] == chunk.text
    assert certainty(chunks, written) == "known"
    assert plan(after(chunks, written), TEXT).known == 1


def test_the_text_goes_before_numbers_from_the_store():
    chunks = stored(windows())
    by_store = after(chunks, plan(chunks))
    by_text = plan(shuffled(by_store), TEXT)
    for chunk in by_store:
        more = by_text.added[chunk.id]
        assert more["chunk_index"] == chunk.metadata["chunk_index"]
        # Only the first letter says that they are certain now.
        assert chunk.metadata["chunk_numbering"] == f"s{more['chunk_numbering'][1:]}" != more["chunk_numbering"]
    assert plan(by_store, "Another text.").added == {}


def linked(chunks, run):
    """Chunks with links, in runs of some length."""
    return [
        replace(
            chunk,
            previous_id=f"id {rank - 1}" if rank % run else None,
            next_id=f"id {rank + 1}" if (rank + 1) % run else None,
        )
        for rank, chunk in enumerate(chunks)
    ]


def test_links_of_all_chunks_are_written_since_a_question_tears_them():
    chunks = stored(windows(overlap=0))
    written = plan(shuffled(linked(chunks, len(chunks))), in_sequence=False)
    assert one(written)[2:] == (len(chunks), PositionKind.LINKS, "previous, next", "")
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert certainty(chunks[::4], written) == "known"


def test_runs_of_links_are_not_written_without_the_text():
    chunks = linked(stored(windows(overlap=0)[:12]), 4)
    torn = plan(chunks, in_sequence=False)
    assert (torn.added, one(torn).note) == ({}, f"{UNLINKED_RUNS}; nothing is written")
    assert numbers(plan(shuffled(chunks), TEXT), chunks) == list(range(12))


def pages_of(count):
    """The text of a file with pages, and its chunks in source order."""
    pages = [prose(200, seed) for seed in range(count)]
    rows = [
        (text, {"source": "book", "page": at}) for at, page in enumerate(pages) for text in windows(page, overlap=0)
    ]
    return pages, chunks_of(rows)


def test_chunks_of_a_page_are_in_the_sequence_of_the_store_or_the_text():
    pages, chunks = pages_of(4)
    by_store, by_text = plan(chunks), plan(shuffled(chunks), "\n\n".join(pages), in_sequence=False)
    assert numbers(by_store, chunks) == numbers(by_text, chunks) == list(range(len(chunks)))
    assert one(by_store)[3:] == (PositionKind.STORE, "Store, confirmed by page", "")
    assert (certainty(chunks, by_store), certainty(chunks, by_text)) == ("assumed", "known")
    unknown = plan(shuffled(chunks), in_sequence=False)
    assert one(unknown)[2:] == (0, PositionKind.PAGE, "page", f"{SHARED_POSITION}; nothing is written")


@pytest.mark.parametrize("page", [{"page": 1}, {"loc": {"pageNumber": 1}}])
def test_chunks_with_pages_get_no_offsets_because_these_would_count_from_the_page(page):
    chunks = stored(windows(), **page)
    written = plan(shuffled(chunks), TEXT, in_sequence=False)
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert {frozenset(more) for more in written.added.values()} == {frozenset(NO_OFFSETS)}


def test_several_sources_each_have_their_numbers():
    chunks = chunks_of([(text, {key: key}) for text in windows()[:2] for key in ("source", "url")])
    written = plan(chunks)
    assert numbers(written, chunks) == [0, 0, 1, 1]
    assert [source.source for source in written.sources] == ["source", "url"]


# What is not certain, or not known.


def test_a_chunk_that_is_not_in_the_text_is_left_out():
    texts = windows()
    texts[3] = texts[3].replace("a", "4")
    chunks = stored(texts)
    # The sequence of the store is that of another version of the text.
    for in_sequence in (True, False):
        written = plan(chunks, TEXT, in_sequence=in_sequence)
        assert numbers(written, chunks) == [*range(3), None, *range(3, len(chunks) - 1)]
        assert one(written).note == f"{NOT_FOUND}; {MISSING}; 1 chunk left out"
    by_both = plan(chunks, TEXT, trusted=True)
    assert numbers(by_both, chunks) == list(range(len(chunks)))
    assert one(by_both).note == NOT_FOUND


def test_a_chunk_that_the_text_lacks_is_not_placed_by_a_store_to_which_others_were_added_later():
    texts = windows(overlap=0)
    chunks = stored([*texts[:8], texts[8].replace("a", "4"), *texts[10:], texts[9]])
    assert numbers(plan(chunks, TEXT), chunks) == [*range(8), None, *range(9, len(texts) - 1), 8]


def test_a_chunk_without_a_place_costs_only_its_page():
    pages, chunks = pages_of(4)
    twice = "The keeper signs this page at noon."
    pages[2] = f"{twice} {pages[2]} {twice}"
    chunks.append(Chunk(twice, len(chunks), metadata={"source": "book", "page": 2}, id="unclear"))
    written = plan(shuffled(chunks), "\n\n".join(pages), in_sequence=False)
    on_page = [chunk for chunk in chunks if chunk.metadata["page"] == 2]
    placed = [chunk for chunk in chunks if chunk.metadata["page"] != 2]
    assert numbers(written, placed) == list(range(len(placed)))
    assert set(numbers(written, on_page)) == {None}
    assert one(written).note == f"{NOT_FOUND}; {SHARED_POSITION}; {len(on_page)} chunks left out"
    assert certainty(placed, written) == "known"


def test_a_chunk_at_several_places_of_the_text_has_its_place_in_the_sequence_of_the_store():
    texts = windows(overlap=0)
    chunks = stored([*texts[:5], "Yes, sir.", *texts[5:]])
    text = "".join([*texts[:5], "Yes, sir. Yes, sir.", *texts[5:]])
    written = plan(chunks, text)
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert "start_index" not in written.added["id 5"]
    assert one(written).note == NOT_FOUND
    without = plan(chunks, text, in_sequence=False)
    assert numbers(without, chunks) == [*range(5), None, *range(5, len(texts))]
    # Its offset tells which one it is.
    chunks[5] = replace(chunks[5], metadata={"source": "book", "start_index": text.index("Yes")})
    assert plan(chunks, text).written == len(chunks)


def test_a_source_that_was_added_twice():
    chunks = stored(windows() * 2)
    for written in (plan(chunks), plan(chunks, TEXT)):
        # Equal texts at one place are one chunk to a retriever.
        assert numbers(written, chunks) == list(range(len(windows()))) * 2


def test_a_part_that_was_added_again_is_numbered_as_its_original():
    """A notice is a chunk of its own on page 0, and a part of another chunk on page 3."""
    notice = "The keeper signs each page at noon."
    pages, chunks = pages_of(4)
    pages[0], pages[3] = f"{notice} {pages[0]}", f"{pages[3]} The end: {notice}"
    rows = [(notice, 0), *((chunk.text, chunk.metadata["page"]) for chunk in chunks), (f"The end: {notice}", 3)]
    chunks = chunks_of([(text, {"source": "book", "page": page}) for text, page in rows])
    text = "\n\n".join(pages)
    stamped = after(chunks, plan(chunks, text))
    again = [replace(chunk, rank=len(chunks) + chunk.rank, id=f"again {chunk.rank}") for chunk in chunks[:15]]
    written = plan([*stamped, *again], text)
    assert (numbers(written, again), one(written).written, one(written).note) == (list(range(15)), 15, "")


def test_a_second_version_of_a_source():
    texts = windows()
    other = [text if number % 5 else text[::-1] for number, text in enumerate(texts, 1)]
    chunks = stored([*texts, *other])
    left = sum(text not in texts for text in other)
    without, written = plan(chunks), plan(chunks, TEXT)
    assert without.written == written.written == len(chunks) - left
    assert one(without).note == f"{ADDED_AGAIN}; {left} chunks left out"
    assert one(written).note.endswith(f"{MISSING}; {left} chunks left out")


def test_stamps_of_two_ingestions():
    texts = windows()
    rows = [
        (text, {"source": "book", "chunk_index": at % 10, "chunk_numbering": f"n{at // 10}"})
        for at, text in enumerate(texts)
    ]
    chunks = chunks_of(rows)
    written = plan(shuffled(chunks), TEXT, in_sequence=False)
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert plan(after(chunks, written)).known == 1
    lost = plan(chunks, in_sequence=False)
    assert (lost.added, one(lost).note) == ({}, f"{RESTARTED}; nothing is written")
    # A chunk that is left out keeps its number, which retrieval does not compare with the new ones.
    chunks[5] = replace(chunks[5], text=texts[5].replace("a", "4"))
    partly = plan(chunks, TEXT, in_sequence=False)
    assert numbers(partly, chunks) == [*range(5), None, *range(5, len(chunks) - 1)]
    assert certainty(chunks[3:8], partly) == "unknown"
    assert certainty(chunks[6:12], partly) == "known"


def test_numbers_of_another_tool_are_not_known_after_they_were_written():
    chunks = chunks_of([(text, {"source": "book", "chunk_index": at}) for at, text in enumerate(windows(overlap=0))])
    chunks[-1] = replace(chunks[-1], metadata={"source": "book"})
    written = plan(chunks, in_sequence=False)
    assert numbers(written, chunks) == [*range(len(chunks) - 1), None]
    assert order_of(Listing(chunks[:5])).certainty == certainty(chunks[:5], written) == "assumed"


def test_a_place_that_the_caller_trusts_the_store_to_know_is_assumed_after_it_was_written():
    chunks = stored([*windows(overlap=0), "Added later."])
    written = plan(chunks, TEXT, trusted=True)
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert certainty(chunks[-2:], written) == "assumed"


def test_chunks_that_were_added_to_stamped_ones():
    chunks = stored(windows())
    grown = [*after(chunks[:-2], plan(chunks[:-2])), *chunks[-2:]]
    # The overlaps tell where they belong.
    for in_sequence in (True, False):
        assert numbers(plan(grown, in_sequence=in_sequence), grown) == list(range(len(grown)))


def test_what_an_interrupted_write_left_out_is_written_by_the_next():
    chunks = stored(windows())
    for text in (None, TEXT):
        whole = plan(chunks, text)
        half = dict(list(whole.added.items())[::2])
        rest = plan([replace(one, metadata={**one.metadata, **half.get(one.id, {})}) for one in chunks], text)
        assert {**half, **rest.added} == whole.added
        assert (rest.written, one(rest).note) == (len(chunks) - len(half), "")


def test_offsets_that_contradict_each_other_are_replaced():
    chunks = chunks_of([(text, {"source": "book", "start_index": at % 3}) for at, text in enumerate(windows())])
    written = plan(shuffled(chunks), TEXT, in_sequence=False)
    assert [written.added[chunk.id]["start_index"] for chunk in chunks] == [TEXT.index(text) for text in windows()]


def test_chunks_that_cannot_be_told_apart_are_left_out():
    chunks = chunks_of([(text, {"source": source}) for source in "ab" for text in windows()])
    written = plan([replace(chunk, id="same" if chunk.rank in (2, 5) else chunk.id) for chunk in chunks])
    written_of = [(source.source, source.written) for source in written.sources]
    assert written_of == [("a", len(windows()) - 2), ("b", len(windows()))]
    assert written.sources[0].note == "2 chunks with a duplicate id; 2 chunks left out"


def test_a_text_that_cannot_be_read():
    def refuse(_):
        raise ConnectionError("\x1b[31mred https://ada:hunter2@example.org/")

    written = plan(stored(windows()), refuse)
    assert written.written == len(windows())
    assert one(written).note.startswith("its text cannot be read: ConnectionError: ")
    assert one(written).note.endswith("red https://***@example.org/")
    assert "\x1b" not in one(written).note
    empty = plan(stored(windows()), "")
    assert empty.added == {}
    assert one(empty).note.endswith(f"{MISSING}; nothing is written")


def test_a_text_is_read_where_it_is_needed():
    read: list[str] = []

    def reading(name: str) -> str:
        read.append(name)
        return TEXT

    rows: list[tuple[str, dict[str, Any]]] = [(text, {"source": "a"}) for text in windows()]
    rows += [(text, {"source": "known", "start_index": TEXT.index(text)}) for text in windows()]
    written = plan(chunks_of([*rows, ("One.", {"source": "alone"})]), reading)
    assert (read, written.known, one(written).source) == (["a"], 2, "a")


# Sources.


def test_chunks_that_do_not_say_their_source():
    chunks = chunks_of([(text, {"source": "book"} if number else {}) for number, text in enumerate(windows())])
    unnamed, named = plan(chunks).sources
    note = "these chunks do not name their source; name it with source_key=..."
    assert unnamed == (None, 1, 0, PositionKind.NONE, "", note)
    assert (named.source, named.written) == ("book", len(chunks) - 1)


def test_a_source_key():
    chunks = stored(windows(), source=None, title="book")
    assert plan(chunks).written == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written = plan(chunks, source_key="title")
    assert (one(written).source, written.written) == ("book", len(chunks))
    forget()
    with pytest.warns(SourceWarning, match="source_key='titel'.*did you mean 'title'"):
        plan(chunks, source_key="titel")


@pytest.mark.parametrize(
    "dirty",
    [
        {"chunk_index": [1]},
        {"chunk_index": True},
        {"chunk_index": np.array([1, 2])},
        {"chunk_index": Decimal("sNaN")},
        {"start_index": -1},
        {5: "a"},
        {"chunk_numbering": 7},
    ],
    ids=str,
)
def test_dirty_metadata_do_not_stop_it(dirty):
    chunks = stored(windows())
    chunks = [replace(chunk, metadata={**chunk.metadata, **dirty}) for chunk in chunks]
    assert numbers(plan(chunks), chunks) == list(range(len(chunks)))


# The report.


def test_the_report():
    rows = [(text, {"source": "voyage.txt"}) for text in windows()[:3]]
    chunks = chunks_of([*rows, ("One.", {"source": "b"}), ("Two.", {"url": "c"}), ("Three.", {})])
    planned = plan(chunks, dry_run=True)
    assert planned.added == plan(chunks).added
    assert str(planned) == (
        "positions of 3 of 6 chunks would be written; the order of 2 other sources is known\n"
        "\n"
        "  source       chunks  written  position from                    note\n"
        "  (not named)  1       0        -                                "
        "these chunks do not name their source; name it with source_key=...\n"
        "  voyage.txt   3       3        Store, 2 of 2 neighbors overlap"
    )
    assert str(plan(chunks[3:4])) == "positions of 0 of 1 chunk were written; the order of 1 other source is known"


def test_of_many_sources_those_with_a_note_are_shown_first():
    rows = [(text, {"source": f"s{number}"}) for number in range(60) for text in windows()[:3]]
    rows[150:153] = [(text, {"source": "apart"}) for text in windows(overlap=0)[:3]]
    written = plan(chunks_of(rows))
    lines = str(written).splitlines()
    assert lines[3].startswith("  apart")
    assert (lines[-1], len(lines)) == ("and 40 more sources", 24)
    assert len(written.sources) == 60


def test_hostile_names():
    names = [
        "<b>\x1b[31m\u202e\n" + "x" * 500,
        "a\ud800b",
        "https://ada:hunter2@example.org/?api_key=sk-1234567890abcd",
    ]
    written = plan(chunks_of([(text, {"source": name}) for name in names for text in windows()[:4]]))
    assert all(line.isprintable() and len(line) < 250 for line in repr(written).splitlines())
    assert "hunter2" not in str(written)
    assert "sk-123" not in str(written)


class Shelf(StoreAdapter):
    """Lists the rows of a list, and keeps what is written into it."""

    writable = in_insertion_order = True

    def chunks(self, field="", sources=()):
        return [StoredChunk(f"id {row}", text, dict(metadata)) for row, (text, metadata) in enumerate(self.store)]

    def write(self, metadata):
        for key, added in metadata.items():
            self.store[int(key.removeprefix("id "))][1].update(added)


def test_a_dry_run_writes_nothing():
    rows: list[tuple[str, dict[str, Any]]] = [(text, {"source": "book"}) for text in windows()]
    options: dict[str, Any] = {"read_source": None, "trust_store_order": False, "source_key": None}
    planned = write_into(Shelf(rows), rows, **options, dry_run=True)
    assert len(planned.added) == len(rows)
    assert all(metadata == {"source": "book"} for _, metadata in rows)
    assert write_into(Shelf(rows), rows, **options, dry_run=False).added.keys() == planned.added.keys()
    assert [metadata["chunk_index"] for _, metadata in rows] == list(range(len(rows)))
