"""What a check of all chunks says: the numbers, the problem in the words of retrieval, and the line against it."""

import json
import re
import warnings
from html.parser import HTMLParser

import pytest

from oprag import (
    Chunk,
    ContextOptions,
    OptionError,
    PositionCheck,
    PositionKind,
    PositionWarning,
    SourceWarning,
    Span,
    arrange,
)
from oprag.chunk import changed
from oprag.positions.check_listings import Checked, check_listings
from oprag.positions.remedies import Remedies
from oprag.positions.stamp import stamps
from oprag.warn import forget
from tests.helpers import hit, prose

REMEDIES = Remedies(
    stamp="stamp()",
    name="name()",
    offsets="offsets()",
    write="write({options})",
    retrieve="retrieve({options})",
    delete="delete({source})",
)
TEXT = prose(1_200, seed=8)


def cut(size=300, overlap=60, text=TEXT, **metadata):
    """Chunks that overlap, with or without metadata."""
    starts = range(0, len(text) - overlap, size - overlap)
    return [hit(text[start : start + size], rank, **metadata) for rank, start in enumerate(starts)]


def located(chunks, **metadata):
    return [
        changed(chunk, metadata={**chunk.metadata, "start_index": TEXT.index(chunk.text), **metadata})
        for chunk in chunks
    ]


def stamped(chunks):
    added = stamps(chunks, None, None)
    return [changed(chunk, metadata={**chunk.metadata, **one}) for chunk, one in zip(chunks, added, strict=True)]


def check(*lists, store="", writable=True, max_chunks=20_000, read_source=None, **options):
    remedies = REMEDIES if writable else Remedies(**{**vars(REMEDIES), "write": ""})
    return check_listings(
        [Checked(store or "documents", chunks, bool(store), len(chunks), bool(store)) for chunks in lists],
        ContextOptions(**options),
        lambda _: remedies,
        max_chunks=max_chunks,
        read_source=read_source,
    )


def only(found: PositionCheck):
    (source,) = found.sources
    return source


def warned(chunks):
    """What retrieval says of these chunks."""
    forget()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        arrange([changed(chunk, rank=rank) for rank, chunk in enumerate(chunks)])
    return [str(warning.message) for warning in caught]


# How well the order is known.


def test_texts_that_a_source_repeats_at_other_places_are_no_copies():
    texts = [f"Bill of lading {number // 2}: {number // 2 + 7} casks of oil." for number in range(20)]
    found = check(stamped([Chunk(text, rank, source="bills.pdf") for rank, text in enumerate(texts)]))
    assert (only(found).ingestions, only(found).duplicates, found.notes) == (1, 0, ())


def test_headings_are_not_suggested_as_names_of_files():
    # A stamp before the last splitter: several chunks have one number, and their headings tell them apart.
    chunks = [
        Chunk(
            f"text {number}",
            number,
            metadata={"source": "a.md", "chunk_index": number // 3, "header_path": f"/{number // 3}/"},
        )
        for number in range(12)
    ]
    assert "header_path" not in only(check(chunks)).remedy


@pytest.mark.parametrize(
    ("chunks", "kind"),
    [
        (stamped(cut()), PositionKind.STAMPED),
        (located(cut()), PositionKind.OFFSET),
        (located(cut(), page=1), PositionKind.PAGE_OFFSET),
        ([hit(f"page {page}", page, page=page) for page in range(5)], PositionKind.PAGE),
    ],
)
def test_an_order_that_metadata_tell_is_no_problem(chunks, kind):
    found = check(chunks)
    source = only(found)
    assert (found.ok, source.kind, source.orderable_pairs, source.missing) == (True, kind, 1.0, 0)
    assert source.problem == source.remedy == ""
    assert warned(chunks) == []


def test_without_metadata_nothing_is_known_of_a_list():
    source = only(check(cut()))
    assert (source.kind, source.missing, source.orderable_pairs) == (PositionKind.NONE, len(cut()), 0.0)
    assert source.problem in warned(cut())[0]


def test_the_sequence_of_a_store_is_known_where_texts_confirm_it():
    source = only(check(cut(), store="Store"))
    assert (source.kind, source.orderable_pairs, source.problem) == (PositionKind.STORE, 1.0, "")
    assert source.field == f"Store, {len(cut()) - 1} of {len(cut()) - 1} neighbors overlap"
    source = only(check(cut(overlap=0), store="Store"))
    assert "in the order in which they were added to the store" in source.problem
    assert source.remedy == 'write(, read_source="folder")  # or trust_store_order=True, if nothing was added later'


def test_parts_that_were_added_out_of_order_have_no_problem_if_their_texts_overlap():
    chunks = cut()
    source = only(check([*chunks[10:], *chunks[:10]], store="Store"))
    assert (source.kind, source.problem) == (PositionKind.STORE, "")
    # Between two parts, another one is missing.
    source = only(check([*chunks[15:], *chunks[:10]], store="Store"))
    assert "in the order in which they were added to the store" in source.problem
    assert source.remedy.startswith('write(, read_source="folder")')


def test_pages_with_several_chunks_are_ordered_in_part():
    chunks = [hit(text, rank, page=rank // 2) for rank, text in enumerate("abcdef")]
    source = only(check(chunks))
    # 3 of 15 pairs are of one page.
    assert source.orderable_pairs == pytest.approx(12 / 15)
    assert source.problem in warned(chunks)[0]
    assert only(check(chunks, store="Store")).orderable_pairs == 1.0


def test_links_connect_all_chunks_but_not_the_part_that_retrieval_finds():
    def linked(count):
        return [
            Chunk(
                f"text {number}",
                number,
                source="book",
                id=str(number),
                previous_id=str(number - 1) if number else None,
                next_id=str(number + 1) if number + 1 < count else None,
            )
            for number in range(count)
        ]

    source = only(check(linked(9)))
    assert (source.kind, source.orderable_pairs) == (PositionKind.LINKS, 1.0)
    assert "not the subset that a search returns" in source.problem
    assert "have no position" in warned(linked(9)[::3])[0]
    assert only(check(linked(2))).problem == ""


def test_offsets_of_some_chunks_and_links_to_the_others_are_not_enough_for_a_part_either():
    # As two node parsers of LlamaIndex leave them: offsets in the first section, and a link to the chunk before.
    chunks = [
        Chunk(
            f"text {number}",
            number,
            metadata={"start_index": 10 * number} if number < 3 else {},
            source="book",
            id=str(number),
            previous_id=str(number - 1) if number else None,
        )
        for number in range(12)
    ]
    source = only(check(chunks))
    assert source.kind is PositionKind.OFFSET
    assert "not the subset that a search returns" in source.problem
    assert "have no position" in warned(chunks[::3])[0]


def test_two_runs_of_links_are_ordered_inside_alone():
    chunks = [
        Chunk(
            f"text {number}",
            number,
            source="book",
            id=str(number),
            next_id=None if number % 4 == 3 else str(number + 1),
            previous_id=None if number % 4 == 0 else str(number - 1),
        )
        for number in range(8)
    ]
    assert only(check(chunks)).orderable_pairs == pytest.approx(12 / 28)


def test_a_position_key_is_used():
    chunks = [hit(text, rank, act=rank) for rank, text in enumerate("abc")]
    assert only(check(chunks, position_key="act")).kind is PositionKind.KEY
    with pytest.warns(PositionWarning, match="none of the 3 chunks has the metadata key 'axt'"):
        source = only(check(chunks, position_key="axt"))
    assert source.missing == 3


def test_a_function_that_names_the_source_leaves_retrieval_with_the_chunks_it_finds():
    source = only(check(cut(), store="Store", source_key=lambda chunk: f"the {chunk.metadata['source']}"))
    assert (source.source, source.kind) == ("the book", PositionKind.STORE)
    assert "wrong if some of them were added later" in source.problem


# What is wrong with the chunks.


def test_a_second_ingestion_is_counted_and_is_no_problem_of_the_order():
    found = check(located(cut()) * 2, store="Store")
    source = only(found)
    assert (source.ingestions, source.duplicates, source.chunks) == (2, len(cut()), 2 * len(cut()))
    assert (source.orderable_pairs, source.near_duplicates, found.ok) == (1.0, 0, True)
    assert (
        f"{len(cut())} chunks of 1 source were added more than once, so a search returns duplicates",
        "delete('book')",
    ) in found.notes
    assert only(check(cut() * 3, store="Store")).ingestions == 3


def paged(chunks):
    return [changed(chunk, metadata={**chunk.metadata, "page": chunk.rank // 3}) for chunk in chunks]


PARTS_AGAIN = {
    "the start, then all": lambda chunks: ([*chunks[:10], *chunks], range(10, 20)),
    "all, then the start": lambda chunks: ([*chunks, *chunks[:10]], range(len(chunks), len(chunks) + 10)),
    "all, then a part": lambda chunks: ([*chunks, *chunks[5:15]], range(len(chunks), len(chunks) + 10)),
    "three attempts": lambda chunks: ([*chunks[:10], *chunks[:15], *chunks], [*range(10, 20), *range(25, 40)]),
}


@pytest.mark.parametrize("store", ["", "Store"])
@pytest.mark.parametrize("again", PARTS_AGAIN)
@pytest.mark.parametrize("kind", ["nothing", "pages", "offsets", "pages and offsets", "stamps"])
def test_a_part_of_a_source_that_was_added_again_is_found(kind, again, store):
    prepare = {
        "nothing": lambda chunks: chunks,
        "pages": paged,
        "offsets": located,
        "pages and offsets": lambda chunks: paged(located(chunks)),
        "stamps": stamped,
    }[kind]
    chunks, copies = PARTS_AGAIN[again](prepare(cut()))
    found = check([changed(chunk, id=str(number)) for number, chunk in enumerate(chunks)], store=store)
    source = only(found)
    if kind == "nothing" and again == "all, then a part" and not store:
        # The source may end with a copy of one of its parts.
        assert source.duplicates == 0
        return
    assert (source.duplicates, source.ingestions) == (len(copies), 1)
    assert source.duplicate_ids == tuple(str(number) for number in copies)
    assert found.distinct(range(len(chunks))) == [number for number in range(len(chunks)) if number not in copies]
    if kind in ("nothing", "pages"):
        with pytest.raises(OptionError, match="not certain which chunks of 'book' are copies"):
            found.duplicate_ids("book")
    if kind in ("nothing", "pages") and not store:
        assert "added to the store more than once" in source.problem
        assert source.remedy == "delete('book')"
    else:
        # Copies share the place of the first in the sequence of the store.
        assert found.ok
    if kind not in ("nothing", "pages"):
        assert found.duplicate_ids("book") == list(source.duplicate_ids)
        assert found.notes[0].what.startswith(f"{len(copies)} chunks of 1 source were added more than once")


def certain(chunks):
    return only(check([changed(chunk, rank=rank, id=str(rank)) for rank, chunk in enumerate(chunks)])).is_copied


def test_copies_are_certain_only_if_nothing_else_can_be_lost():
    texts = ["Yes.", "No."]
    assert certain([*located(cut()), *located(cut()[:9])])
    assert certain([*cut(), *cut()])
    assert certain([*paged(cut()), *paged(cut())])
    # The source may repeat these itself.
    assert not certain([*cut(), *cut(), *cut()[:9]])
    assert not certain([hit(text, 0) for text in texts * 2])
    assert not certain([chunk for chunk in cut() for _ in range(2)])
    assert not certain([*paged(cut()[:9]), *paged(cut())])
    # Another tenant's chunks are not copies.
    assert not certain([chunk for tenant in "ab" for chunk in located(cut(), tenant=tenant)])
    assert certain([chunk for tenant in "ab" for chunk in located(cut(), _tenant=tenant)])


def test_offsets_tell_each_copy_and_pages_only_those_of_a_part():
    scattered = cut()[3:20:4]
    assert only(check([*located(cut()), *located(scattered)])).duplicates == len(scattered)
    assert only(check([*paged(cut()), *paged(scattered)])).duplicates == 0
    assert only(check([*cut(), *scattered])).duplicates == 0


def test_equal_texts_at_other_places_are_no_duplicates():
    chunks = [hit("the same", rank, start_index=100 * rank) for rank in range(4)]
    source = only(check(chunks))
    assert (source.duplicates, source.ingestions) == (0, 1)


@pytest.mark.parametrize("prepare", [cut, lambda: located(cut()), lambda: stamped(cut())])
def test_another_version_of_a_source_is_a_second_ingestion(prepare):
    chunks = prepare()
    later = [
        changed(
            chunk,
            text=chunk.text.replace("e", "E", 2) if number % 2 else chunk.text,
            metadata={**chunk.metadata, **({"chunk_numbering": "n2"} if "chunk_index" in chunk.metadata else {})},
        )
        for number, chunk in enumerate(chunks)
    ]
    source = only(check([*chunks, *later], store="Store"))
    assert source.ingestions == 2
    assert source.problem
    assert source.remedy == "delete('book')"


def test_offsets_that_contradict_each_other_are_counted():
    chunks = [hit(f"section {number} {text}", number, start_index=0) for number, text in enumerate("abc")]
    source = only(check(chunks, writable=False))
    assert (source.contradictory, source.missing, source.remedy) == (3, 3, "stamp()")
    assert source.problem in warned(chunks)[0]


def test_numbers_of_several_calls_are_counted():
    chunks = [*stamped(cut()[:10]), *stamped(cut()[10:])]
    source = only(check(chunks, writable=False))
    assert (source.contradictory, source.remedy) == (len(chunks), "stamp()")
    assert "stamped in several calls" in source.problem
    assert source.problem in warned(chunks)[0]


def test_text_that_repeats_the_chunk_before_is_measured():
    chunks = located(cut())
    repeated = (len(chunks) - 1) * 60 / sum(len(chunk.text) for chunk in chunks)
    assert only(check(chunks)).repeated_text == pytest.approx(repeated)
    assert only(check(located(cut(overlap=0)))).repeated_text == 0
    # Offsets let a context join them.
    assert check(chunks).notes == ()
    (note,) = check(stamped(cut())).notes
    assert (note.remedy, "without offsets a context cannot stitch them" in note.what) == ("offsets()", True)


def test_near_duplicates_are_found_in_any_source_and_neighbors_are_none():
    chunks = located(cut(size=900, overlap=450))
    assert only(check(chunks)).near_duplicates == 0
    copies = [changed(chunk, metadata={**chunk.metadata, "source": "copy"}) for chunk in chunks[2:4]]
    found = check([*chunks, *copies])
    assert {source.source: source.near_duplicates for source in found.sources} == {"book": 0, "copy": 2}
    assert found.ok
    (note,) = found.notes
    assert note == (
        "2 chunks have at least 80 % of the text of another chunk",
        "retrieve(redundancy_threshold=0.95)",
    )


def test_parents_contain_their_children():
    words = TEXT.split()
    parent = Chunk(" ".join(words[:400]), 0, source="book", id="parent", child_ids=("middle",))
    middle = Chunk(" ".join(words[:200]), 1, source="book", id="middle", parent_id="parent", child_ids=("leaf",))
    leaf = Chunk(" ".join(words[50:150]), 2, source="book", id="leaf", parent_id="middle")
    assert only(check([parent, middle, leaf])).near_duplicates == 0


def test_chunks_without_a_source_are_one_row():
    chunks = [Chunk(text, rank) for rank, text in enumerate("abc")]
    found = check([*chunks, hit("d", 3)])
    unnamed = found.sources[0]
    assert (unnamed.source, unnamed.chunks, unnamed.orderable_pairs, unnamed.remedy) == (None, 3, 0.0, "name()")
    assert unnamed.problem in warned([*chunks, hit("d", 3)])[0]
    assert found.sources[1].problem == ""


def test_sources_that_are_parts_of_one_have_a_problem():
    chunks = [hit(text, rank, source=f"https://a.example/b.html#part{rank}") for rank, text in enumerate("abc")]
    found = check(chunks)
    assert len({source.problem for source in found.sources}) == 1
    assert found.sources[0].problem in warned(chunks)[0]
    assert found.sources[0].remedy == 'retrieve(source_key=lambda chunk: chunk.metadata["source"].partition("#")[0])'


# The remedy.


def test_a_key_that_tells_the_files_of_one_name_apart_is_found():
    files = [
        hit(f"{name} {number}", 0, source="folder", author="A", title=name, start_index=10 * number)
        for name in ("first", "other")
        for number in range(4)
    ]
    source = only(check(files))
    assert (source.contradictory, source.remedy) == (8, "retrieve(source_key='title')")


def test_a_key_that_may_count_the_chunks_is_suggested():
    counted = [hit(f"text {number}", rank, verse=number + 3) for rank, number in enumerate((4, 0, 2, 1, 3))]
    source = only(check(counted))
    assert source.remedy == "retrieve(position_key='verse')  # if this key counts the chunks of a source"
    assert check(counted, position_key="verse").ok
    for others in ((4, 4, 2, 1, 3), (7_000, 60, 2, 1, 3), ("a", 4, 2, 1, 3)):
        given = [hit(f"text {rank}", rank, verse=number) for rank, number in enumerate(others)]
        assert "position_key" not in only(check(given)).remedy


def test_chunks_without_a_source_may_have_a_key_that_names_it():
    chunks = [Chunk(f"text {rank}", rank, metadata={"doc_title": "A" if rank < 3 else "B"}) for rank in range(6)]
    assert check(chunks).sources[0].remedy == "retrieve(source_key='doc_title')"


@pytest.mark.parametrize(
    ("chunks", "remedy"),
    [
        (cut(), "offsets()"),
        # The splitter was asked for offsets, and lost them.
        (cut(start_index=-1), "stamp()"),
        ([hit(text, rank, page=1) for rank, text in enumerate("ab")], "offsets()"),
    ],
)
def test_a_store_that_cannot_be_written_to_is_filled_anew(chunks, remedy):
    assert only(check(chunks, writable=False)).remedy == remedy
    assert only(check(chunks)).remedy == 'write(, read_source="folder")'


def test_files_of_one_name_may_be_why_offsets_contradict_each_other():
    files = [hit(f"{name} {number}", 0, start_index=10 * number) for name in ("first", "other") for number in range(4)]
    source = only(check(files))
    assert source.contradictory == len(files)
    assert source.remedy.partition("  # ") == (
        'write(, read_source="folder")',
        "  # ",
        "or, if several files have this name, give each its own and fill the store again",
    )


# The texts of the sources.


def test_chunks_are_looked_for_in_the_text_of_their_source():
    chunks = cut()
    found = check(chunks, read_source={"book": TEXT}.__getitem__)
    assert (found.ok, only(found).kind, only(found).field) == (True, PositionKind.OFFSET, "text of the source")
    (note,) = found.notes
    assert note == (
        "the order of 1 source is known only from the text that was read",
        "write(, read_source=read_source)",
    )


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


# Samples and several lists.


def test_a_sample_leaves_out_the_source_that_it_cuts():
    chunks = [hit(f"{name} {number}", 0, source=name, start_index=number) for name in "abc" for number in range(10)]
    found = check(chunks, max_chunks=15)
    assert [source.source for source in found.sources] == ["a"]
    assert (found.chunks, found.total, found.sampled, found.partial_source) == (10, 30, True, "b")
    assert str(found).startswith(
        "documents: the first 10 chunks of 30 from 1 source, without b, which was read only in part"
    )
    found = check(chunks, max_chunks=20)
    assert (len(found.sources), found.sampled, found.partial_source) == (2, True, "")


def test_the_only_source_is_kept_where_a_sample_cuts_it():
    found = check(located(cut()), max_chunks=3)
    assert (only(found).chunks, found.sampled, found.partial_source) == (3, True, "")
    assert not check(located(cut()), max_chunks=len(cut())).sampled


def test_no_more_is_read_than_the_sample():
    def endless():
        number = 0
        while True:
            yield hit(f"text {number}", 0, source=f"source {number // 10}", start_index=number)
            number += 1

    found = check_listings([Checked("Store", endless(), True)], ContextOptions(), lambda _: REMEDIES, max_chunks=100)
    assert (found.chunks, found.sampled, found.total) == (100, True, None)


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


# What is shown.


def test_the_worst_sources_come_first():
    chunks = [
        *located(cut()),
        *(hit(text, 0, source="pages", page=rank // 2) for rank, text in enumerate("abcd")),
        *(hit(text, 0, source="nothing") for text in "abc"),
    ]
    assert [source.source for source in check(chunks).sources] == ["nothing", "pages", "book"]


def test_a_table_shows_what_there_is_to_say():
    text = str(check([*cut(), *(hit(one, 0, source="fine", page=page) for page, one in enumerate("ab"))]))
    assert re.split(r"  +", text.splitlines()[2].strip()) == [
        *("source", "chunks", "order by", "order", "without position", "repeated text"),
    ]
    assert re.search(rf"^!  book +{len(cut())} +kind 7, none +unknown +{len(cut())} +19 %$", text, re.MULTILINE)
    assert re.search(r"^   fine +2 +kind 5, page or number: page +known$", text, re.MULTILINE)
    problem = "chunks of a source have no position, so their order is unknown (book)"
    assert f'Problem: {problem}\n    write(, read_source="folder")' in text


def test_a_problem_of_many_sources_is_told_once():
    chunks = [hit(f"{name} {text}", 0, source=f"source {name}") for name in range(30) for text in "ab"]
    text = str(check(chunks))
    assert text.count("Problem: ") == 1
    assert "(source 0 and 29 more sources)" in text
    assert "and 10 more sources\n" in text
    assert sum(line.startswith("!") for line in text.splitlines()) == 20


def test_a_problem_whose_remedies_name_the_source_is_told_once():
    versions = [
        changed(chunk, metadata={**chunk.metadata, "source": name}, text=chunk.text.replace("e", edit))
        for name, text in (("a", TEXT), ("b", prose(1_200, seed=9)))
        for edit in ("e", "E")
        for chunk in cut(size=600, text=text)
    ]
    text = str(check(versions, store="Store"))
    assert text.count("Problem: ") == 1
    assert text.count("delete('a')") == 1
    assert "delete('b')" not in text


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)


def test_a_notebook_shows_a_table_without_the_markup_of_names():
    page = check([hit(text, 0, source="<script>alert(1)</script>") for text in "ab"])._repr_html_()
    tags = Tags()
    tags.feed(page)
    assert tags.seen == {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "b", "pre"}
    assert "&lt;script&gt;" in page


def test_json_has_everything_but_the_ids():
    found = check([changed(chunk, id=str(chunk.rank)) for chunk in cut()])
    told = found.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["ok"] is False
    assert told["sources"][0] == {
        "source": "book",
        "chunks": len(cut()),
        "kind": "none",
        "field": "",
        "certainty": "unknown",
        "missing": len(cut()),
        "duplicates": 0,
        "contradictory": 0,
        "ingestions": 1,
        "orderable_pairs": 0.0,
        "repeated_text": only(found).repeated_text,
        "near_duplicates": 0,
        "problem": only(found).problem,
        "remedy": 'write(, read_source="folder")',
    }
    assert found.ids("book") == [str(number) for number in range(len(cut()))]


@pytest.mark.parametrize("ids", [PositionCheck.ids, PositionCheck.duplicate_ids])
@pytest.mark.parametrize(
    ("name", "known"),
    [("boook", "'book'"), *((name, "'book', 'other.pdf'") for name in ("none", None, 7))],
)
def test_ids_of_a_source_that_is_not_there_are_refused(ids, name, known):
    found = check([*cut(), hit("text", 0, source="other.pdf")])
    message = f"the source {name!r} was not found; the check found {known}"
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$") as error:
        ids(found, name)
    assert error.value.value == name


def test_keys_in_names_are_masked():
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"
    names = [f"https://a.example/{'x' * 30}?api_key={key}", f"{'y' * 28} {key}", key]
    chunks = [hit(text, 0, source=name) for name in names for text in "ab"]
    found = check(chunks, store="Store")
    sampled = check([*chunks, *chunks[-2:]], max_chunks=5)
    for shown in (
        str(found),
        repr(found),
        repr(found.sources),
        found._repr_html_(),
        json.dumps(found.to_dict()),
        str(sampled),
    ):
        assert "abcdefgh" not in shown
        assert "sk-proj" not in shown


HOSTILE = [
    None,
    "",
    " ",
    "\ud800",
    "a\x1b[31mb\nc",
    {"a": 1},
    [1],
    float("nan"),
    -1,
    True,
    10**400,
    "9" * 500,
    b"x",
    object(),
]


@pytest.mark.parametrize("store", ["", "Store"])
@pytest.mark.parametrize(
    "key", ["source", "chunk_index", "start_index", "page", "page_label", "chunk_numbering", "row", "title"]
)
def test_whatever_metadata_hold_is_shown(key, store):
    chunks = [
        Chunk(f"text {rank}", rank, metadata={"source": "book", key: value}) for rank, value in enumerate(HOSTILE * 2)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SourceWarning)
        found = check(chunks, store=store)
    shown = str(found) + found._repr_html_() + json.dumps(found.to_dict())
    shown.encode()
    assert "\x1b" not in shown


@pytest.mark.parametrize("text", ["", "\ud800", "\0" * 30, "a" * 5_000, "\n" * 50, "é" * 300])
@pytest.mark.parametrize("store", ["", "Store"])
def test_whatever_text_chunks_have(text, store):
    found = check([hit(text, rank) for rank in range(12)], store=store)
    # Images have no text. In the sequence of a store, the source may repeat a text.
    assert only(found).duplicates == (11 if text and not store else 0)
    str(found).encode()


def test_offsets_of_a_framework_are_judged_as_those_of_metadata():
    chunks = [Chunk(f"text {rank}", rank, source="book", span=Span(rank * 10, rank * 10 + 6)) for rank in range(4)]
    assert only(check(chunks)).kind is PositionKind.OFFSET
    restarted = [changed(chunk, span=Span(0, 6)) for chunk in chunks]
    assert only(check(restarted)).contradictory == 4
