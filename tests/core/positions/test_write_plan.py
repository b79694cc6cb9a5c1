"""What is written into a store: which positions are found for all of its chunks, and what the report says."""

import json
import random
import warnings
from dataclasses import replace
from typing import Any

import pytest

from oprag import Chunk, PositionKind, SourceWarning, Span, build_context
from oprag.positions.placing import place
from oprag.positions.source_order import (
    INSERTION_ORDER_ONLY,
    MISSING,
    SHARED_POSITION,
    UNLINKED_RUNS,
    Listing,
    order_of,
)
from oprag.positions.write_plan import plan_positions
from oprag.warn import forget
from tests.helpers import prose, with_answers

TEXT = prose(700, seed=3)
NOTICE = "The keeper signs each page at noon."


def windows(text=TEXT, size=200, overlap=40):
    return [text[start : start + size] for start in range(0, len(text) - overlap, size - overlap)]


def stored(texts, source="book", **metadata):
    """The chunks of a source as a store lists them."""
    return chunks_of([(text, {"source": source, **metadata}) for text in texts])


def chunks_of(rows):
    return [Chunk(text, rank, metadata=metadata, id=f"id {rank}") for rank, (text, metadata) in enumerate(rows)]


NOT_CONFIRMED = (
    f"{INSERTION_ORDER_ONLY}; nothing is written without its text (read_source=...) or trust_store_order=True"
)


def plan(chunks, texts=None, *, in_sequence=True, trusted=False, source_key=None, dry_run=False):
    read_source = texts if callable(texts) or texts is None else texts.__getitem__
    return plan_positions(
        chunks,
        "Store",
        in_insertion_order=in_sequence,
        read_source=read_source,
        trust_store_order=trusted,
        source_key=source_key,
        dry_run=dry_run,
    )


def after(chunks, written):
    """The chunks with what was written."""
    return [replace(chunk, metadata={**chunk.metadata, **written.added.get(chunk.id, {})}) for chunk in chunks]


def numbers(written, chunks):
    return [written.added.get(chunk.id, {}).get("chunk_index") for chunk in chunks]


def shuffled(chunks, seed=1):
    ranks = random.Random(seed).sample(range(len(chunks)), len(chunks))
    return [replace(chunks[rank], rank=place) for place, rank in enumerate(ranks)]


def one(written):
    (source,) = written.sources
    return source


# How positions are found.


def test_the_sequence_of_the_store():
    chunks = stored(windows())
    written = plan(chunks)
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert len({more["chunk_numbering"] for more in written.added.values()}) == 1
    assert {frozenset(more) for more in written.added.values()} == {frozenset({"chunk_index", "chunk_numbering"})}
    source = one(written)
    neighbors = len(chunks) - 1
    assert (source.source, source.chunks, source.written, source.kind, source.field, source.note) == (
        *("book", len(chunks), len(chunks), PositionKind.STORE),
        *(f"Store, {neighbors} of {neighbors} neighbors overlap", ""),
    )
    again = plan(after(chunks, written))
    assert (again.sources, again.known, again.added) == ((), 1, {})


def test_a_sequence_that_texts_do_not_confirm_is_written_where_it_is_trusted():
    chunks = stored(windows(overlap=0))
    assert one(plan(chunks))[2:] == (
        *(0, PositionKind.STORE, f"Store, 0 of {len(chunks) - 1} neighbors overlap"),
        NOT_CONFIRMED,
    )
    written = plan(chunks, trusted=True)
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert one(written).note == INSERTION_ORDER_ONLY


def test_a_sequence_that_texts_contradict_is_not_written_even_if_it_is_trusted():
    chunks = shuffled(stored([*windows(), "Added later.", "Another."]))
    written = plan(chunks, trusted=True)
    assert written.added == {}
    assert one(written).note == "chunks that overlap were added to the store apart from each other; nothing is written"


def test_the_text_of_the_source():
    chunks = shuffled(stored(windows()))
    written = plan(chunks, {"book": TEXT})
    assert one(written)[2:] == (len(chunks), PositionKind.OFFSET, "text of the source", "")
    for chunk in chunks:
        more = written.added[chunk.id]
        assert TEXT[more["start_index"] : more["end_index"]] == chunk.text
    in_order = sorted(chunks, key=lambda chunk: TEXT.index(chunk.text))
    assert numbers(written, in_order) == list(range(len(chunks)))
    (report,) = place(after(chunks, written), None, None).sources
    assert (report.kind, report.missing) == (PositionKind.STAMPED, 0)
    assert plan(after(chunks, written), {"book": TEXT}).known == 1


def test_numbers_are_the_same_whatever_they_are_found_by():
    chunks = stored(windows())
    by_store, by_text = plan(chunks), plan(shuffled(chunks), {"book": TEXT})
    for key, more in by_store.added.items():
        other = by_text.added[key]
        assert more["chunk_index"] == other["chunk_index"]
        # The first letter says what they were found by.
        assert more["chunk_numbering"] == f"s{other['chunk_numbering'][1:]}" != other["chunk_numbering"]


def test_the_text_goes_before_the_sequence_of_the_store():
    chunks = stored([text for pair in zip(windows()[::2], windows()[1::2], strict=False) for text in pair[::-1]])
    in_order = sorted(chunks, key=lambda chunk: TEXT.index(chunk.text))
    # The overlaps put it right as well.
    for texts in (None, {"book": TEXT}):
        written = plan(chunks, texts)
        assert (numbers(written, in_order), one(written).note) == (list(range(len(chunks))), "")


def test_links_of_all_chunks_are_written_since_a_question_tears_them():
    chunks = shuffled(
        [
            replace(chunk, previous_id=f"id {rank - 1}" if rank else None, next_id=f"id {rank + 1}")
            for rank, chunk in enumerate(stored(windows(overlap=0)))
        ]
    )
    written = plan(chunks, in_sequence=False)
    assert one(written)[2:] == (len(chunks), PositionKind.LINKS, "previous, next", "")
    assert [f"id {number}" for number in numbers(written, chunks)] == [chunk.id for chunk in chunks]
    (report,) = place(after(chunks, written)[::4], None, None).sources
    assert (report.kind, report.missing) == (PositionKind.STAMPED, 0)


def test_runs_of_links_are_in_the_sequence_of_the_store_where_it_has_them_so():
    chunks = stored(windows(overlap=0)[:12])
    linked = [
        replace(
            chunk,
            previous_id=f"id {rank - 1}" if rank % 4 else None,
            next_id=f"id {rank + 1}" if rank % 4 < 3 else None,
        )
        for rank, chunk in enumerate(chunks)
    ]
    written = plan(linked, trusted=True)
    assert (one(written).kind, numbers(written, linked)) == (PositionKind.STORE, list(range(12)))
    torn = f"{UNLINKED_RUNS}; nothing is written"
    assert one(plan(linked, in_sequence=False)).note == torn
    # A store that has linked chunks the other way around is not believed.
    backwards = [replace(chunk, rank=rank) for rank, chunk in enumerate(linked[::-1])]
    assert (one(plan(backwards)).kind, one(plan(backwards)).note) == (PositionKind.LINKS, torn)
    assert numbers(plan(backwards, {"book": TEXT}), linked) == list(range(12))


@pytest.mark.parametrize("overlap", [0, 40])
def test_chunks_of_a_page_are_in_the_sequence_of_the_store(overlap):
    pages = [prose(200, seed) for seed in range(4)]
    chunks = chunks_of(
        [
            (text, {"source": "a.pdf", "page": number, "page_label": str(number + 1)})
            for number, page in enumerate(pages)
            for text in windows(page, overlap=overlap)
        ]
    )
    # Pages that count up confirm the sequence, also without overlaps.
    written = plan(chunks)
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert (one(written).kind, one(written).field) == (PositionKind.STORE, "Store, confirmed by page")
    assert one(written).note == ""
    by_text = plan(shuffled(chunks), {"a.pdf": "\n\n".join(pages)}, in_sequence=False)
    assert numbers(by_text, chunks) == list(range(len(chunks)))
    unknown = plan(shuffled(chunks), in_sequence=False)
    assert one(unknown)[2:] == (
        *(0, PositionKind.PAGE, "page"),
        f"{SHARED_POSITION}; nothing is written",
    )


def pages_of(numbers, overlap=40, **metadata):
    """Texts of pages, and their chunks in source order."""
    pages = [prose(200, seed) for seed in numbers]
    rows = [
        (text, {"source": "a.pdf", "page": number, **metadata})
        for number, page in zip(numbers, pages, strict=True)
        for text in windows(page, overlap=overlap)
    ]
    return pages, chunks_of(rows)


@pytest.mark.parametrize("page", [{"page": 1}, {"loc": {"pageNumber": 1}}])
def test_chunks_with_pages_get_no_offsets_because_these_would_count_from_the_page(page):
    chunks = stored(windows(), **page)
    written = plan(shuffled(chunks), {"book": TEXT}, in_sequence=False)
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert {frozenset(more) for more in written.added.values()} == {frozenset({"chunk_index", "chunk_numbering"})}


def test_a_chunk_without_a_place_costs_only_its_page():
    pages, chunks = pages_of(range(4), overlap=0)
    twice = "The keeper signs this page at noon."
    pages[2] = f"{twice} {pages[2]} {twice}"
    unclear = Chunk(twice, len(chunks), metadata={"source": "a.pdf", "page": 2}, id="unclear")
    chunks = [*chunks, unclear]
    written = plan(shuffled(chunks), {"a.pdf": "\n\n".join(pages)}, in_sequence=False)
    on_page = [chunk for chunk in chunks if chunk.metadata["page"] == 2]
    placed = [chunk for chunk in chunks if chunk.metadata["page"] != 2]
    assert numbers(written, placed) == list(range(len(placed)))
    assert set(numbers(written, on_page)) == {None}
    assert one(written).note == (
        f"1 chunk not found in its text, or at several places; {SHARED_POSITION}; {len(on_page)} chunks left out"
    )
    # The numbers are used where all retrieved chunks have one.
    assert [chunk.text for chunk in build_context(after(placed, written)).kept] == [chunk.text for chunk in placed]


def test_a_part_that_was_added_again_is_numbered_as_its_original():
    """A notice is a chunk of its own on page 0, and part of a longer chunk on page 3."""
    pages, chunks = pages_of(range(4))
    pages[0], pages[3] = f"{NOTICE} {pages[0]}", f"The end: {NOTICE} {pages[3]}"
    texts = [(NOTICE, 0), *((chunk.text, chunk.metadata["page"]) for chunk in chunks), (f"The end: {NOTICE}", 3)]
    texts.sort(key=lambda of_page: of_page[1])
    chunks = chunks_of([(text, {"source": "a.pdf", "page": page}) for text, page in texts])
    book = {"a.pdf": "\n\n".join(pages)}
    stamped = after(chunks, plan(chunks, book))
    again = [replace(one, rank=len(chunks) + one.rank, id=f"again {one.rank}") for one in chunks[:15]]
    written = plan([*stamped, *again], book)
    assert numbers(written, again) == list(range(15))
    assert (one(written).written, one(written).note) == (15, "")


def test_chunks_numbered_by_the_store_of_which_some_are_in_the_text():
    chunks = stored(windows())
    numbered = [*after(chunks, plan(chunks))[:-1], replace(chunks[-1], text="Added later.")]
    unknown = Chunk("Another.", len(numbered), metadata={"source": "book"}, id="other")
    written = plan(shuffled([*numbered, unknown]), {"book": TEXT})
    assert "2 chunks not found in its text" in one(written).note
    assert numbers(written, [*numbered, unknown]) == [*range(len(chunks) - 1), None, None]


def test_equal_chunks_stay_on_their_pages():
    pages = [prose(25, seed) for seed in range(6)]
    chunks = shuffled(
        chunks_of(
            [
                (text, {"source": "a.pdf", "page": number})
                for number, page in enumerate(pages)
                for text in (page, "Blank page")
            ]
        )
    )
    written = plan(chunks, {"a.pdf": "\nBlank page\n".join([*pages, ""])}, in_sequence=False)
    in_order = sorted(chunks, key=lambda chunk: written.added[chunk.id]["chunk_index"])
    assert [chunk.metadata["page"] for chunk in in_order] == [number for number in range(6) for _ in range(2)]


def test_several_sources_each_have_their_numbers():
    first, second = windows(), windows(prose(500, seed=4))
    chunks = chunks_of(
        [row for a, b in zip(first, second, strict=False) for row in ((a, {"source": "a"}), (b, {"url": "b"}))]
    )
    written = plan(chunks)
    assert numbers(written, chunks)[::2] == numbers(written, chunks)[1::2] == list(range(len(chunks) // 2))
    assert [source.source for source in written.sources] == ["a", "b"]


# What is not certain, or not known.


def test_chunks_that_are_not_in_the_text_have_no_position():
    texts = windows()
    texts[3] = texts[3].replace("a", "4")
    chunks = shuffled(stored(texts))
    written = plan(chunks, {"book": TEXT}, in_sequence=False)
    assert one(written).written == len(chunks) - 1
    assert one(written).note == f"1 chunk not found in its text, or at several places; {MISSING}; 1 chunk left out"
    kept = after(chunks, written)
    again = plan(kept, {"book": TEXT}, in_sequence=False)
    assert (again.added, one(again).kind) == ({}, PositionKind.STAMPED)
    # The sequence of the store is that of another version of the text.
    assert plan(stored(texts), {"book": TEXT}).written == len(chunks) - 1
    by_both = plan(stored(texts), {"book": TEXT}, trusted=True)
    assert by_both.written == len(chunks)
    assert one(by_both).note.startswith("1 chunk not found in its text")


def test_a_source_that_repeats_itself():
    rows = [text for number in range(8) for text in (prose(20, number), "La la la.")]
    text = "\n".join(rows)
    chunks = shuffled(stored(rows))
    written = plan(chunks, {"book": text}, in_sequence=False)
    in_order = sorted(chunks, key=lambda chunk: written.added[chunk.id]["chunk_index"])
    assert [chunk.text for chunk in in_order] == rows
    lacking = [chunk for chunk in chunks if chunk.id != "id 3"]
    written = plan([replace(chunk, rank=rank) for rank, chunk in enumerate(lacking)], {"book": text}, in_sequence=False)
    assert one(written).note == f"7 chunks not found in its text, or at several places; {MISSING}; 7 chunks left out"


@pytest.mark.parametrize("in_sequence", [True, False])
def test_a_chunk_at_too_many_places_does_not_block_its_source(in_sequence):
    text, pieces = with_answers({3: "Yes, sir. Yes, sir.", 1_400: "Yes, sir."})
    chunks = stored(pieces)
    written = plan(chunks if in_sequence else shuffled(chunks), {"book": text}, in_sequence=in_sequence)
    placed = [chunk for chunk in chunks if in_sequence or chunk.text != "Yes, sir."]
    assert numbers(written, placed) == list(range(len(placed)))
    assert len(written.added) == len(placed)


def left_out():
    """A text, the chunks of its source, of which one is at two places between its neighbors, and that chunk's rank."""
    text, pieces = with_answers({1_400: "Yes, sir. Yes, sir."})
    pieces.remove("Yes, sir.")
    return text, stored(pieces), pieces.index("Yes, sir.")


def test_a_chunk_at_several_places_of_the_text_has_its_place_in_the_sequence_of_the_store():
    text, chunks, rank = left_out()
    written = plan(chunks, {"book": text})
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert one(written).note == "1 chunk not found in its text, or at several places"
    # Without the sequence, it is left out alone.
    written = plan(chunks, {"book": text}, in_sequence=False)
    assert numbers(written, [*chunks[:rank], *chunks[rank + 1 :]]) == list(range(len(chunks) - 1))
    assert len(written.added) == len(chunks) - 1
    assert one(written).note.endswith("; 1 chunk left out")
    partly = after(chunks, written)
    at = {"start_index": text.index("Yes, sir.", text.index("Part 1400"))}
    partly[rank] = replace(partly[rank], metadata={"source": "book", **at})
    chunks[rank] = partly[rank]
    assert plan(chunks, {"book": text}).written == len(chunks)


def test_a_chunk_that_neighbors_cannot_place_costs_only_its_page():
    text, chunks, rank = left_out()
    chunks = [replace(chunk, metadata={"source": "book", "page": chunk.rank // 10}) for chunk in chunks]
    written = plan(chunks, {"book": text}, in_sequence=False)
    placed = [chunk for chunk in chunks if chunk.rank // 10 != rank // 10]
    assert numbers(written, placed) == list(range(len(placed)))
    assert len(written.added) == len(placed) == len(chunks) - 10


def test_a_source_that_was_added_twice():
    chunks = stored(windows() * 2)
    count = len(windows())
    for written in (plan(chunks), plan(chunks, {"book": TEXT})):
        assert numbers(written, chunks) == list(range(count)) * 2
        # Equal texts at one place are one chunk to a retriever.
        assert place(after(chunks, written), None, None).sources[0].kind is PositionKind.STAMPED


def test_a_second_version_of_a_source():
    texts = windows()
    other = [text if number % 5 else text[::-1] for number, text in enumerate(texts, 1)]
    chunks = stored([*texts, *other])
    left = sum(text not in texts for text in other)
    without = plan(chunks)
    assert without.written == len(chunks) - left
    assert (
        one(without).note == f"the source seems to have been added to the store more than once; {left} chunks left out"
    )
    written = plan(chunks, {"book": TEXT})
    assert written.written == len(chunks) - left
    assert one(written).note == (
        f"{left} chunks not found in its text, or at several places; {MISSING}; {left} chunks left out"
    )


def test_chunks_that_were_added_again_later():
    texts = windows()
    chunks = stored([*texts[:4], *texts[5:], texts[4]])
    for given in (None, {"book": TEXT}):
        written = plan(chunks, given)
        assert numbers(written, sorted(chunks, key=lambda chunk: TEXT.index(chunk.text))) == list(range(len(chunks)))
        assert one(written).note == ""


@pytest.mark.parametrize("in_sequence", [True, False])
def test_stamps_of_two_ingestions(in_sequence):
    rows = [
        (text, {"source": "book", "chunk_index": number % 10, "chunk_numbering": f"n{number // 10}"})
        for number, text in enumerate(windows())
    ]
    chunks = chunks_of(rows)
    texts = None if in_sequence else {"book": TEXT}
    written = plan(chunks if in_sequence else shuffled(chunks), texts, in_sequence=in_sequence)
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert plan(after(chunks, written)).known == 1
    lost = plan(chunks, in_sequence=False)
    assert lost.added == {}
    assert one(lost).note.startswith("the chunk_index values of a source were stamped in several calls")
    # A chunk that is left out keeps its number, which retrieval does not compare with the new ones.
    changed = [(text.replace("a", "4") if number == 5 else text, row) for number, (text, row) in enumerate(rows)]
    other = chunks_of(changed)
    partly = plan(other, {"book": TEXT}, in_sequence=False)
    assert numbers(partly, other) == [*range(5), None, *range(5, len(other) - 1)]
    assert order_of(Listing(after(other, partly)[3:8])).certainty == "unknown"
    assert order_of(Listing(after(other, partly)[6:12])).certainty == "known"


def test_numbers_of_another_tool_are_not_known_after_they_were_written():
    chunks = chunks_of([(text, {"source": "book", "chunk_index": at}) for at, text in enumerate(windows(overlap=0))])
    lacking = [*chunks[:-1], replace(chunks[-1], metadata={"source": "book"})]
    written = plan(lacking, in_sequence=False)
    assert numbers(written, lacking) == [*range(len(chunks) - 1), None]
    assert order_of(Listing(lacking[:5])).certainty == "assumed"
    assert order_of(Listing(after(lacking, written)[:5])).certainty == "assumed"


def test_a_place_that_the_caller_trusts_the_store_to_know_is_assumed_after_it_was_written():
    chunks = stored([*windows(overlap=0), "Added later."])
    written = plan(chunks, {"book": TEXT}, trusted=True)
    assert numbers(written, chunks) == list(range(len(chunks)))
    assert order_of(Listing(after(chunks, written)[-2:])).certainty == "assumed"


def test_chunks_that_were_added_to_stamped_ones():
    texts = windows()
    chunks = stored(texts[:-2])
    first = plan(chunks)
    grown = [*after(chunks, first), *chunks_of([(text, {"source": "book"}) for text in texts])[-2:]]
    # The overlaps tell where they belong.
    for in_sequence in (True, False):
        second = plan(grown, in_sequence=in_sequence)
        assert numbers(second, grown) == list(range(len(texts)))


def test_what_an_interrupted_write_left_out_is_written_by_the_next():
    chunks = stored(windows())
    texts = {"book": TEXT}
    for given in (None, texts):
        whole = plan(chunks, given)
        half = dict(list(whole.added.items())[::2])
        there = [replace(chunk, metadata={**chunk.metadata, **half.get(chunk.id, {})}) for chunk in chunks]
        rest = plan(there, given)
        assert {**half, **rest.added} == whole.added
        assert rest.written == len(chunks) - len(half)
        assert one(rest).note == ""


def test_offsets_that_contradict_each_other_are_replaced():
    chunks = chunks_of([(text, {"source": "book", "start_index": number % 3}) for number, text in enumerate(windows())])
    written = plan(shuffled(chunks), {"book": TEXT}, in_sequence=False)
    assert one(written).note == ""
    assert [written.added[chunk.id]["start_index"] for chunk in chunks] == [TEXT.index(text) for text in windows()]


def test_offsets_that_some_chunks_have_stay():
    rows = [(text, {"source": "book", "start_index": TEXT.index(text)}) for text in windows()]
    del rows[4][1]["start_index"]
    lacking = plan(shuffled(chunks_of(rows)), in_sequence=False)
    assert numbers(lacking, chunks_of(rows)) == list(range(len(rows)))
    assert plan(chunks_of(rows)).written == len(rows)
    assert plan(shuffled(chunks_of(rows)), {"book": TEXT}, in_sequence=False).written == len(rows)


def test_white_space_that_was_changed():
    text = TEXT.replace(" ", "  \n")
    chunks = shuffled(stored(windows()))
    written = plan(chunks, {"book": text}, in_sequence=False)
    assert one(written).note == ""
    for chunk in chunks:
        more = written.added[chunk.id]
        assert text[more["start_index"] : more["end_index"]].split() == chunk.text.split()


def test_chunks_that_cannot_be_told_apart_keep_their_source_from_being_written():
    chunks = chunks_of([(text, {"source": source}) for source in "ab" for text in windows()])
    twins = [replace(chunk, id="same" if chunk.rank in (2, 5) else chunk.id) for chunk in chunks]
    written = plan(twins)
    assert [(source.source, source.written) for source in written.sources] == [("a", 0), ("b", len(windows()))]
    assert written.sources[0].note == "2 chunks with a duplicate id, so nothing is written"
    assert "same" not in written.added


def raises(name):
    raise ConnectionError("no answer, api_key=sk-abcdefghijklmnopqrstuvwxyz012345")


def test_a_text_that_cannot_be_read():
    chunks = stored(windows())
    written = plan(chunks, raises)
    assert written.written == len(chunks)
    assert one(written).note.startswith("its text cannot be read: ConnectionError: no answer")
    assert "abcdefgh" not in one(written).note
    lost = one(plan(chunks, {"book": ""}))
    assert lost.written == 0
    assert lost.note == (
        f"{len(chunks)} chunks not found in its text, or at several places; {MISSING}; nothing is written"
    )


def test_a_text_is_read_where_it_is_needed():
    read = []
    rows: list[Any] = [
        (text, {"source": source}) for source in ("a", "alone") for text in windows()[: 1 if "l" in source else 9]
    ]
    rows += [(text, {"source": "known", "start_index": TEXT.index(text)}) for text in windows()]

    def read_source(name):
        read.append(name)
        return TEXT

    written = plan(chunks_of(rows), read_source)
    assert read == ["a"]
    assert (written.known, [source.source for source in written.sources]) == (2, ["a"])


# Sources.


def test_chunks_that_do_not_say_their_source():
    chunks = chunks_of([(text, {"source": "book"} if number else {}) for number, text in enumerate(windows())])
    written = plan(chunks)
    unnamed, named = written.sources
    assert unnamed == (
        *(None, 1, 0, PositionKind.NONE, ""),
        "these chunks do not name their source; name it with source_key=...",
    )
    assert (named.source, named.written) == ("book", len(chunks) - 1)
    assert "(not named)" in str(written)


@pytest.mark.parametrize("source_key", ["title", ("missing", "title"), lambda chunk: chunk.metadata["title"]])
def test_a_source_key(source_key):
    chunks = stored(windows(), source=None, title="book")
    assert plan(chunks).written == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        written = plan(chunks, source_key=source_key)
    assert (one(written).source, written.written) == ("book", len(chunks))


def test_a_source_key_that_no_chunk_has():
    forget()
    with pytest.warns(SourceWarning, match="source_key='titel'.*did you mean 'title'"):
        plan(stored(windows(), title="book"), source_key="titel")
    # Where some chunks have it, the others are named by the usual keys.
    chunks = chunks_of([(text, {key: "book"}) for key in ("title", "source") for text in windows()[:5]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert one(plan(chunks, source_key="title")).source == "book"


@pytest.mark.parametrize(
    "dirty",
    [
        *({"chunk_index": value} for value in ([1], "x", True, None, float("nan"), -1, {"a": 1})),
        *({"start_index": -1}, {"page": None}, {5: "a"}, {"source": 5}, {"chunk_numbering": 7}),
    ],
)
def test_dirty_metadata_do_not_stop_it(dirty):
    chunks = chunks_of([(text, {"source": "book", **dirty}) for text in windows()])
    written = plan(chunks)
    assert numbers(written, chunks) == list(range(len(chunks)))
    json.dumps(written.to_dict())


@pytest.mark.parametrize("source", ["", " ", [1], None, float("inf"), True])
def test_a_source_that_is_not_a_name(source):
    assert plan(stored(windows(), source=source)).sources[0].source is None


def test_spans_that_a_framework_keeps_are_positions():
    chunks = [
        replace(chunk, span=Span(TEXT.index(chunk.text), TEXT.index(chunk.text) + len(chunk.text)))
        for chunk in shuffled(stored(windows()))
    ]
    assert (plan(chunks).known, plan(chunks).sources) == (1, ())


# The report.


def test_the_report_is_a_table():
    chunks = chunks_of(
        [(text, {"source": "voyage.txt"}) for text in windows()[:3]]
        + [("One.", {"source": "b"}), ("Two.", {"url": "c"})]
    )
    assert str(plan(chunks, dry_run=True)) == (
        "positions of 3 of 5 chunks would be written; the order of 2 other sources is known\n"
        "\n"
        "  source      chunks  written  position from                    note\n"
        "  voyage.txt  3       3        Store, 2 of 2 neighbors overlap"
    )
    assert str(plan(chunks[3:4])) == "positions of 0 of 1 chunk were written; the order of 1 other source is known"
    assert str(plan([])) == "positions of 0 of 0 chunks were written"


def test_the_report_as_values():
    chunks = stored(windows()[:3])
    written = plan(chunks, dry_run=True)
    values = json.loads(json.dumps(written.to_dict()))
    assert values == {
        "chunks": 3,
        "written": 3,
        "known_sources": 0,
        "dry_run": True,
        "sources": [
            {
                "source": "book",
                "chunks": 3,
                "written": 3,
                "kind": "store",
                "field": "Store, 2 of 2 neighbors overlap",
                "note": "",
            }
        ],
    }
    assert written.added == plan(chunks).added


def test_of_many_sources_those_with_a_note_are_shown_first():
    rows = [(text, {"source": f"s{number}"}) for number in range(60) for text in windows()[:3]]
    rows[150:153] = [(text, {"source": "apart"}) for text in windows(overlap=0)[:3]]
    written = plan(chunks_of(rows))
    lines = str(written).splitlines()
    assert lines[3].startswith("  apart")
    assert lines[-1] == "and 20 more sources"
    assert len(lines) == 44
    assert len(written.sources) == len(written.to_dict()["sources"]) == 60


def test_hostile_names():
    name = "<b>\x1b[31m\u202e\n" + "x" * 500 + "|"
    written = plan(stored(windows()[:4], source=name), lambda source: f"{source[:1]}{1 / 0}")
    for line in repr(written).splitlines():
        assert line.isprintable()
        assert len(line) < 250
    assert json.loads(json.dumps(written.to_dict()))["sources"][0]["source"] == name
    secret = plan(stored(windows()[:4], source="https://example.org/?api_key=sk-abcdefghijklmnopqrstuvwx012345"))
    assert "abcdefgh" not in str(secret) + json.dumps(secret.to_dict())
    login = plan(stored(windows()[:4], source="https://ada:hunter2@example.org/"), lambda _: 1 / 0)
    assert "hunter2" not in str(login) + json.dumps(login.to_dict())
    str(plan(stored(windows()[:4], source="a\ud800b"))).encode()


def test_the_error_of_a_reader_is_masked():
    def refuse(_):
        raise RuntimeError("\x1b[31mred https://ada:hunter2@example.org/")

    written = plan(stored(windows()[:4]), refuse)
    for note in (written.sources[0].note, written.to_dict()["sources"][0]["note"], str(written)):
        assert "red https://***@example.org/" in note
        assert "\x1b" not in note
