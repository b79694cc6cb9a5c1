"""The check of all chunks: certainty, problem and suggestion of each source, and the notes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from oprag import Chunk, ContextOptions, PositionCheck, PositionKind
from oprag.chunk import changed
from oprag.errors import OptionError, PositionWarning
from oprag.positions.check import Checked, check_listings
from oprag.positions.source_order import (
    ADDED_AGAIN,
    CONFLICTING_OFFSETS,
    INSERTION_ORDER_ONLY,
    MISSING,
    RESTARTED,
    SHARED_POSITION,
)
from oprag.positions.stamp import stamps
from oprag.positions.suggestions import Suggestions
from tests.helpers import hit, prose

LINES = Suggestions(
    chunks="chunks", stamp="stamp()", name="name()", retrieve="retrieve({options})", delete={"store": "delete({ids})"}
)
DELETE = "delete(check_positions(store).ids('book'))  # and add it once"
TEXT = prose(1_200, seed=8)
WRITE = "write_positions(store, read_source=documents)"
TRUST = f"{WRITE}  # or trust_store_order=True, if nothing was added later"


def cut(size=300, overlap=60, text=TEXT, **metadata):
    """Chunks that overlap, with or without metadata."""
    starts = range(0, len(text) - overlap, size - overlap)
    return [hit(text[start : start + size], rank, **metadata) for rank, start in enumerate(starts)]


def located(chunks, **metadata):
    return [
        changed(chunk, metadata={**chunk.metadata, "start_index": TEXT.index(chunk.text), **metadata})
        for chunk in chunks
    ]


def paged(chunks):
    return [changed(chunk, metadata={**chunk.metadata, "page": chunk.rank // 3}) for chunk in chunks]


def stamped(chunks):
    added = stamps(chunks, None, None)
    return [changed(chunk, metadata={**chunk.metadata, **one}) for chunk, one in zip(chunks, added, strict=True)]


def edited(chunks):
    """A later version, in which every third chunk was changed."""
    return [
        changed(
            chunk,
            text=chunk.text if number % 3 else chunk.text.replace("e", "E", 2),
            metadata={**chunk.metadata, **({"chunk_numbering": "n2"} if "chunk_index" in chunk.metadata else {})},
        )
        for number, chunk in enumerate(chunks)
    ]


def chain(count, run=100):
    """Chunks linked in runs, with nothing else that tells their order."""
    return [
        Chunk(
            f"text {number}",
            number,
            source="book",
            id=str(number),
            previous_id=str(number - 1) if number % run else None,
            next_id=str(number + 1) if (number + 1) % run and number + 1 < count else None,
        )
        for number in range(count)
    ]


def check(*lists, store="", writable=True, max_chunks=20_000, read_source=None, **options):
    return check_listings(
        [Checked(store or "documents", chunks, bool(store), bool(store)) for chunks in lists],
        ContextOptions(**options),
        replace(LINES, writable=writable, deletable=True),
        max_chunks=max_chunks,
        read_source=read_source,
    )


def only(found: PositionCheck):
    (source,) = found.sources
    return source


class Case(NamedTuple):
    """Chunks and what a check says of them; `problem` is a part of the problem."""

    chunks: list[Chunk]
    certainty: str
    problem: str = ""
    suggestion: str = ""
    store: str = ""
    kind: PositionKind | None = None
    writable: bool = True
    options: Mapping[str, Any] = {}


PAGES = [hit(text, rank, page=rank // 2) for rank, text in enumerate("abcdef")]
CASES = {
    # Lists: only metadata and links tell the order.
    "stamps": Case(stamped(cut()), "known", kind=PositionKind.STAMPED),
    "offsets": Case(located(cut()), "known", kind=PositionKind.OFFSET),
    "pages and offsets": Case(located(cut(), page=1), "known", kind=PositionKind.PAGE_OFFSET),
    "a chunk for each page": Case([hit(f"page {page}", page, page=page) for page in range(5)], "known"),
    "nothing": Case(cut(), "unknown", MISSING, WRITE, kind=PositionKind.NONE),
    "nothing, read-only": Case(cut(), "unknown", MISSING, "stamp()", writable=False),
    "several chunks for each page": Case(PAGES, "unknown", SHARED_POSITION, WRITE, kind=PositionKind.PAGE),
    "links": Case(chain(9), "unknown", "not from the few that a search returns", WRITE, kind=PositionKind.LINKS),
    "links of two chunks": Case(chain(2), "known"),
    "runs of links": Case(chain(8, run=4), "unknown", "several runs", WRITE),
    "offsets of some, links to the others": Case(
        [
            changed(chunk, metadata={"start_index": 10 * rank} if rank < 3 else {})
            for rank, chunk in enumerate(chain(12))
        ],
        "unknown",
        "not from the few that a search returns",
        WRITE,
    ),
    "offsets of each section": Case(
        [hit(f"section {number} {text}", number, start_index=0) for number, text in enumerate("abc")],
        "unknown",
        CONFLICTING_OFFSETS,
        "stamp()",
        writable=False,
    ),
    "stamps of several calls": Case([*stamped(cut()[:10]), *stamped(cut()[10:])], "unknown", RESTARTED, WRITE),
    "files of one name": Case(
        [
            hit(f"{name} {number}", 0, source="folder", author="A", title=name, start_index=10 * number)
            for name in ("first", "other")
            for number in range(4)
        ],
        "unknown",
        CONFLICTING_OFFSETS,
        WRITE,
    ),
    "a key that may count": Case(
        [hit(f"text {number}", rank, verse=number + 3) for rank, number in enumerate((4, 0, 2, 1, 3))],
        "unknown",
        MISSING,
        "retrieve(position_key='verse')  # if this key counts the chunks of a source",
    ),
    "a key that the user names": Case(
        [hit(text, rank, verse=rank) for rank, text in enumerate("abc")],
        "known",
        kind=PositionKind.KEY,
        options={"position_key": "verse"},
    ),
    "a copy of the source": Case(located(cut()) * 2, "known"),
    # Stores: the sequence counts as well.
    "overlaps": Case(cut(), "known", store="Store", kind=PositionKind.STORE),
    "a sequence alone": Case(cut(overlap=0), "assumed", INSERTION_ORDER_ONLY, TRUST, store="Store"),
    "pages in sequence": Case(PAGES, "known", store="Store", kind=PositionKind.STORE),
    "parts that overlap": Case([*cut()[10:], *cut()[:10]], "known", store="Store", kind=PositionKind.STORE),
    "parts with a gap": Case([*cut()[15:], *cut()[:10]], "assumed", INSERTION_ORDER_ONLY, TRUST, store="Store"),
    "another version": Case([*cut(), *edited(cut())], "unknown", ADDED_AGAIN, DELETE, store="Store"),
    "another version with offsets": Case(
        [*located(cut()), *edited(located(cut()))], "unknown", ADDED_AGAIN, DELETE, store="Store"
    ),
    "another version with stamps": Case(
        [*stamped(cut()), *edited(stamped(cut()))], "unknown", ADDED_AGAIN, DELETE, store="Store"
    ),
    "another version with other offsets": Case(
        [
            *located(cut()),
            *(
                changed(chunk, metadata={**chunk.metadata, "start_index": 7 + chunk.metadata["start_index"]})
                for chunk in edited(located(cut()))
            ),
        ],
        "unknown",
        ADDED_AGAIN,
        DELETE,
        store="Store",
    ),
    "another version of what has no position": Case(
        [*cut(overlap=0), *edited(cut(overlap=0))], "unknown", ADDED_AGAIN, "stamp()", store="Store"
    ),
    "a name that only a function knows": Case(
        cut(),
        "unknown",
        "not from the few that a search returns",
        TRUST,
        store="Store",
        options={"source_key": lambda chunk: f"the {chunk.metadata['source']}"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_how_the_order_is_known(name):
    case = CASES[name]
    source = only(check(case.chunks, store=case.store, writable=case.writable, **case.options))
    assert source.certainty == case.certainty
    assert case.problem in source.problem
    assert bool(source.problem) == bool(case.problem)
    assert source.suggestion == case.suggestion
    assert case.kind in (None, source.kind)


@pytest.mark.parametrize("others", [(4, 4, 2, 1, 3), (7_000, 60, 2, 1, 3), ("a", 4, 2, 1, 3)])
def test_a_key_that_does_not_count_the_chunks_is_not_suggested(others):
    chunks = [hit(f"text {rank}", rank, verse=number) for rank, number in enumerate(others)]
    assert "position_key" not in only(check(chunks)).suggestion


def test_a_misspelled_key_is_said():
    with pytest.warns(PositionWarning, match="position_key='axt'"):
        source = only(check(cut(act=1), position_key="axt"))
    assert source.missing == source.chunks


@pytest.mark.parametrize("metadata", [[{}] * 3, [{"start_index": start} for start in (0, 300, 600)]])
def test_chunks_without_a_source_are_one_row(metadata):
    found = check([*(Chunk(f"text {rank}", rank, metadata=one) for rank, one in enumerate(metadata)), hit("d", 3)])
    unnamed, named = found.sources
    assert (unnamed.source, unnamed.chunks, unnamed.certainty, unnamed.suggestion) == (None, 3, "unknown", "name()")
    assert "3 of 4 chunks do not name their source" in unnamed.problem
    assert named.problem == ""


def test_sources_that_are_parts_of_one_have_a_problem():
    chunks = [hit(text, rank, source=f"https://a.example/b.html#part{rank}") for rank, text in enumerate("abc")]
    found = check(chunks)
    assert len({source.problem for source in found.sources}) == 1
    assert (
        found.sources[0].suggestion == 'retrieve(source_key=lambda chunk: chunk.metadata["source"].partition("#")[0])'
    )


# Copies.

PARTS_AGAIN = {
    "all": lambda chunks: ([*chunks, *chunks], len(chunks)),
    "the start, then all": lambda chunks: ([*chunks[:10], *chunks], 10),
    "all, then the start": lambda chunks: ([*chunks, *chunks[:10]], 10),
    "all, then a part": lambda chunks: ([*chunks, *chunks[5:15]], 10),
    "three attempts": lambda chunks: ([*chunks[:10], *chunks[:15], *chunks], 25),
}


@pytest.mark.parametrize("store", ["", "Store"])
@pytest.mark.parametrize("again", PARTS_AGAIN)
@pytest.mark.parametrize(
    "prepare",
    [list, paged, located, lambda chunks: paged(located(chunks)), stamped],
    ids=["nothing", "pages", "offsets", "pages and offsets", "stamps"],
)
def test_what_was_added_again_is_counted(prepare, again, store):
    chunks, copies = PARTS_AGAIN[again](prepare(cut()))
    found = check(chunks, store=store)
    assert only(found).duplicates == copies
    if store:
        # Copies share the place of the first in the sequence of the store.
        assert found.ok
    (note,) = found.notes
    assert note.what == f"{copies} chunks of 1 source were added more than once, so a search returns duplicates"
    assert note.suggestion == DELETE


def test_offsets_tell_each_copy():
    scattered = cut()[3:20:4]
    assert only(check([*located(cut()), *located(scattered)])).duplicates == len(scattered)
    assert only(check([*cut(), *scattered[:4]])).duplicates == 0


def test_texts_that_a_source_repeats_are_not_copies():
    bills = [hit(f"Bill of lading {number // 2}: {number // 2 + 7} casks of oil.", number) for number in range(20)]
    same = [hit("the same", rank, start_index=100 * rank) for rank in range(4)]
    on_a_page = [hit("the same" if rank % 2 else f"text {rank}", rank, page=1) for rank in range(4)]
    for chunks in (stamped(bills), same, on_a_page):
        assert (only(check(chunks)).duplicates, check(chunks).notes) == (0, ())


@pytest.mark.parametrize(("size", "overlap"), [(200, 40), (150, 0), (120, 30)])
def test_two_chunk_sizes_are_noted(size, overlap):
    found = check([*located(cut()), *located(cut(size, overlap))], store="Store")
    assert found.ok
    assert [note.suggestion for note in found.notes] == [DELETE]
    assert "in chunks of different sizes" in found.notes[0].what


@pytest.mark.parametrize(("size", "overlap"), [(300, 60), (300, 200), (300, 0), (900, 450)])
def test_overlaps_are_not_two_chunk_sizes(size, overlap):
    assert check(located(cut(size, overlap)), store="Store").notes == ()


def test_parents_are_not_another_chunk_size():
    leaves = [changed(chunk, id=f"{chunk.rank}", parent_id=f"p{chunk.rank // 4}") for chunk in located(cut(overlap=0))]
    parents = [hit(TEXT[start : start + 1_200], 0, start_index=start) for start in range(0, len(TEXT), 1_200)]
    parents = [changed(chunk, id=f"p{number}") for number, chunk in enumerate(parents)]
    assert check([*leaves, *parents]).notes == ()


# The texts of the sources.


def test_chunks_are_looked_for_in_the_text_of_their_source():
    chunks = cut()
    found = check(chunks, read_source={"book": TEXT}.__getitem__)
    assert (found.ok, only(found).kind, only(found).field) == (True, PositionKind.OFFSET, "text of the source")
    assert only(found).certainty == "known"


def test_offsets_that_were_found_go_before_stamps_that_contradict_each_other():
    chunks = [*stamped(cut()[:10]), *stamped(cut()[10:])]
    assert only(check(chunks, read_source=lambda _: TEXT)).kind is PositionKind.OFFSET


def test_a_text_that_cannot_be_read_is_told():
    def read(name):
        raise ValueError("token=hf_abcdefghijklmnopqrstuvwxyz")

    found = check(cut(), read_source=read)
    assert not found.ok
    assert found.notes[-1].what.startswith("the text of 1 source cannot be read, such as 'book': ValueError: ")
    assert "hf_abc" not in str(found)


def test_a_text_is_not_read_where_the_order_is_known():
    assert check(located(cut()), read_source={}.__getitem__).notes == ()


def test_a_text_of_another_version_is_said():
    found = only(check(cut(), store="Store", read_source=lambda _: TEXT.replace("a", "4", 1)[:3_000]))
    assert found.problem == ""
    found = only(check(cut(overlap=0), store="Store", read_source=lambda _: TEXT[:3_000]))
    assert "the text of a source, which may be another version, lacks" in found.problem
    assert found.suggestion == "stamp()"


# Samples and several lists.


def test_a_sample_leaves_out_the_source_that_it_cuts():
    chunks = [hit(f"{name} {number}", 0, source=name, start_index=number) for name in "abc" for number in range(10)]
    found = check(chunks, max_chunks=15)
    assert [source.source for source in found.sources] == ["a"]
    assert (found.chunks, found.sampled) == (10, True)
    assert str(found).startswith("documents: the first 10 chunks from 1 source; ")
    found = check(chunks, max_chunks=20)
    assert (len(found.sources), found.sampled) == (2, True)


def test_the_only_source_is_kept_where_a_sample_cuts_it():
    found = check(located(cut()), max_chunks=3)
    assert (only(found).chunks, found.sampled) == (3, True)
    assert not check(located(cut()), max_chunks=len(cut())).sampled


def test_no_more_is_read_than_the_sample():
    def endless():
        number = 0
        while True:
            yield hit(f"text {number}", 0, source=f"source {number // 10}", start_index=number)
            number += 1

    found = check_listings([Checked("Store", endless(), True)], ContextOptions(), LINES, max_chunks=100)
    assert (found.chunks, found.sampled) == (100, True)


@pytest.mark.parametrize("number", [0, -1, 1.5, "many", True])
def test_the_size_of_a_sample_is_a_number_from_one(number):
    with pytest.raises(OptionError, match="max_chunks must be an integer >= 1"):
        check(cut(), max_chunks=number)


def test_of_several_lists_a_source_is_taken_from_the_first():
    found = check(cut(), [*cut(), hit("other", 0, source="other")], store="Store")
    assert {source.source: source.chunks for source in found.sources} == {"book": len(cut()), "other": 1}
    assert found.ok


def test_nothing_is_no_problem():
    found = check([])
    assert (found.ok, found.sources, str(found)) == (True, (), "documents: no chunks")


@pytest.mark.parametrize("text", ["", "\ud800", "\0" * 30, "a" * 5_000, "\n" * 50, "é" * 300])
@pytest.mark.parametrize("store", ["", "Store"])
def test_whatever_text_chunks_have(text, store):
    found = check([hit(text, rank) for rank in range(12)], store=store)
    assert only(found).duplicates == 0
    str(found).encode()
