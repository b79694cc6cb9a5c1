"""The sequence of a store is taken where it can be right, and refuted by the texts where they tell."""

import random
from itertools import pairwise

import pytest

from oprag import Chunk, Place, PositionKind, Span
from oprag.positions.source_order import (
    ADDED_AGAIN,
    BY_DOCUMENT,
    INSERTION_ORDER_ONLY,
    MISSING,
    TORN_APART,
    Listing,
    SourceOrder,
    order_of,
)
from oprag.positions.source_text import SourceText


def prose(words, seed):
    """Words that are made up, so that no part of some length is in it twice."""
    chance = random.Random(seed)
    return " ".join("".join(chance.choices("abdefgilmnoprstu", k=chance.randint(2, 9))) for _ in range(words))


TEXT = prose(900, seed=3)


def windows(text=TEXT, size=200, overlap=40):
    return [text[start : start + size] for start in range(0, len(text) - overlap, size - overlap)]


def read(texts, metadata=None) -> SourceOrder:
    given = metadata or [{} for _ in texts]
    chunks = [Chunk(text, rank, metadata=one) for rank, (text, one) in enumerate(zip(texts, given, strict=True))]
    return order_of(Listing(chunks, in_sequence=True, complete=True, store="Store"))


def sequence(order):
    """The indices in order, and how many runs they form."""
    return sorted(range(len(order.keys)), key=order.keys.__getitem__), len({key[0] for key in order.keys})


def causes(order):
    return [*order.doubts_among()]


def test_overlapping_neighbors_confirm_each_other():
    order = read(windows())
    count = len(windows())
    assert sequence(order) == (list(range(count)), 1)
    assert (order.certainty, causes(order)) == ("known", [])
    field = f"Store, {count - 1} of {count - 1} neighbors overlap"
    assert order.places[2] == Place((0, 2), PositionKind.STORE, field, run=Span(320, 520, 0), number=2)


def test_neighbors_without_an_overlap_are_runs_of_their_own():
    texts = windows()
    order = read([*texts[:4], *texts[9:12]])
    assert sequence(order) == (list(range(7)), 2)
    assert (order.certainty, causes(order)) == ("assumed", [INSERTION_ORDER_ONLY])
    # Inside a run, it is certain.
    assert order.certainty_with(order.doubts_among([0, 2, 3])) == "known"
    assert sequence(read(windows(overlap=0)))[1] == len(windows(overlap=0))


def test_a_single_chunk_has_its_place():
    order = read(["alone"])
    assert causes(order) == []


@pytest.mark.parametrize("moved", [1, 5, 12])
def test_a_chunk_that_was_added_later_goes_where_its_overlaps_belong(moved):
    texts = windows()
    last = len(texts) - 1
    order = read([*texts[:moved], *texts[moved + 1 :], texts[moved]])
    assert sequence(order) == ([*range(moved), last, *range(moved, last)], 1)
    assert order.certainty == "known"


def test_a_sentence_that_comes_again_refutes_nothing_in_a_long_source():
    """Filings repeat sentences, at the end of one chunk and at the start of another, where neighbors do not overlap."""
    sentence = "The accompanying notes are a part of these statements."
    parts = [prose(40, seed=number) for number in range(400)]
    texts = [parts[number] + ("" if number % 3 else parts[number + 1][:30]) for number in range(399)]
    texts[100] += sentence
    texts[302] = sentence + texts[302]
    assert TORN_APART not in causes(read(texts))
    # Not confirmed there, either.
    assert sequence(read(texts))[1] > 200


def test_batches_of_two_writers_are_put_together():
    texts = windows()
    order = read([*texts[10:20], *texts[:10], *texts[20:]])
    assert sequence(order) == ([*range(10, 20), *range(10), *range(20, len(texts))], 1)
    backwards = read(texts[::-1])
    assert sequence(backwards) == (list(range(len(texts)))[::-1], 1)


def test_a_source_that_was_added_twice_is_taken_once():
    texts = windows()[:6]
    order = read(texts * 3)
    assert list(order.keys) == 3 * list(order.keys[:6])
    assert order.certainty == "known"
    attempts = read([*texts[3:], *texts, *texts[1:]])
    assert [attempts.keys.index(key) for key in attempts.keys] == [0, 1, 2, 3, 4, 5, 0, 1, 2, 4, 5, 0, 1, 2]
    apart = read(windows(overlap=0) * 2)
    assert (apart.certainty, causes(apart)) == ("assumed", [INSERTION_ORDER_ONLY])


def test_a_chunk_that_was_added_again_shares_the_place_of_the_first():
    texts = windows()
    order = read([*texts, texts[4]])
    assert order.keys[-1] == order.keys[4]
    assert order.certainty == "known"


def test_another_version_of_a_source_follows_the_first_one_chunk_by_chunk():
    texts = windows()
    changed = [text if number % 4 else text[::-1] for number, text in enumerate(texts, 2)]
    order = read([*texts, *changed])
    assert causes(order) == [ADDED_AGAIN]
    # The edited version of a chunk comes after it.
    edited = texts.index(changed[2][::-1])
    assert order.keys[edited - 1] < order.keys[len(texts) + edited] < order.keys[edited + 1]


@pytest.mark.parametrize("field", ["page", "chunk_index"])
@pytest.mark.parametrize(("count", "edited"), [(4, {1}), (4, {0}), (6, {0, 1, 5}), (8, {2, 6})], ids=str)
def test_an_edited_version_of_a_short_source_is_not_a_part_of_it(field, count, edited):
    texts = windows(overlap=0)[:count]
    again = [text[::-1] if number in edited else text for number, text in enumerate(texts)]
    order = read([*texts, *again], [{field: number} for number in range(count)] * 2)
    assert causes(order) == [ADDED_AGAIN]
    assert [order.keys[count + number] == order.keys[number] for number in range(count)] == [
        number not in edited for number in range(count)
    ]


def test_boilerplate_joins_no_texts_that_were_added_apart():
    boilerplate = "Do not distribute without permission."
    texts = windows()[:9]
    # It ends the source, begins its second chunk, and is in another one, too.
    texts = [texts[0], f"{boilerplate} {texts[1]}", *texts[2:5], f"{texts[5]} {boilerplate}", *texts[6:]]
    texts[-1] += f" {boilerplate}"
    order = read(texts[::-1])
    runs = [run and run.page for run in order.runs][::-1]
    assert runs[8] != runs[1]


def test_what_is_there_often_refutes_nothing():
    # A footer with a number ends each chunk and begins others.
    pieces = [f"Page {number} of the report of the society\n{one}" for number, one in enumerate(windows(overlap=0))]
    texts = [f"{piece}\nPage {number + 1} of the report of the society" for number, piece in enumerate(pieces)]
    order = read([*texts[:3], *texts[5:]])
    assert causes(order) == [INSERTION_ORDER_ONLY]
    assert sequence(order)[0] == list(range(len(texts) - 2))
    apart = windows(overlap=0)
    assert causes(read(["Yes.", *apart[:4], "Yes.", *apart[4:8], "Yes."])) == [INSERTION_ORDER_ONLY]


@pytest.mark.parametrize("left_out", [2, 4], ids=["before another", "after another"])
def test_a_chunk_without_a_position_goes_beside_one_that_it_overlaps(left_out):
    texts, shown = windows()[:7], [number for number in (5, 3, 0, 6, 4, 2, 1) if number != left_out]
    chunks = [
        Chunk(texts[number], rank, metadata={} if number == 3 else {"start_index": 160 * number})
        for rank, number in enumerate(shown)
    ]
    order = order_of(Listing(chunks))
    assert [shown[index] for index in sequence(order)[0]] == sorted(shown)
    assert causes(order) == [MISSING]


def test_overlaps_that_form_a_ring_tell_nothing():
    texts = windows()[:6]
    order = read([f"{texts[-1][-40:]}{texts[0]}", *texts[1:]])
    assert sequence(order) == (list(range(6)), 6)
    assert causes(order) == [INSERTION_ORDER_ONLY]


def test_numbers_do_not_compare_across_documents_of_one_source():
    """Another tool may have numbered the chunks of each document."""
    chunks = [
        Chunk(f"text {rank}", rank, metadata={"chunk_index": rank}, document_id=name)
        for rank, name in enumerate("aabb")
    ]
    order = order_of(Listing(chunks))
    assert [(order.certainty, [*order.doubts_among(among)]) for among in (range(4), [0, 1])] == [
        ("assumed", [BY_DOCUMENT]),
        ("assumed", []),
    ]


HEADING = "Quarter ended March 31, in millions, unaudited"


def tables(chunks, every):
    """Chunks of a report, of which every so many overlap, and a heading that ends one chunk and begins another one."""
    pieces = windows(prose(150 * chunks, seed=6), size=200, overlap=0)[:chunks]
    texts = [piece + after[:60] * (not number % every) for number, (piece, after) in enumerate(pairwise(pieces))]
    texts[every + 1] += HEADING
    texts[3 * every + 2] = HEADING + texts[3 * every + 2]
    return texts


@pytest.mark.parametrize(
    ("chunks", "every", "refuted"), [(60, 2, True), (40, 3, True), (120, 2, False), (90, 3, False)]
)
def test_a_heading_that_comes_twice_refutes_only_a_short_source(chunks, every, refuted):
    order = read(tables(chunks, every))
    assert causes(order) == [TORN_APART if refuted else INSERTION_ORDER_ONLY]
    assert len(set(order.keys)) == chunks - 1


def test_chunks_that_were_added_in_turn_are_refuted_where_few_overlap():
    texts = tables(60, 5)
    half = len(texts) // 2
    order = read([text for pair in zip(texts[:half], texts[half:], strict=False) for text in pair])
    assert causes(order) == [TORN_APART]


@pytest.mark.parametrize("field", ["page", "page_label"])
def test_a_heading_on_two_pages_refutes_nothing(field):
    texts = tables(60, 2)
    assert causes(read(texts, [{field: number // 6} for number in range(len(texts))])) == []


def test_a_heading_that_occurs_twice_has_two_places():
    order = read([*windows(overlap=0)[:5], "Chapter", "another end", "Chapter"])
    assert [order.places[number].key[1] for number in (5, 7)] == [5, 7]


@pytest.mark.parametrize("line", ["_" * 30, "-" * 40, "ACME Corp - Strictly Confidential - 2024"])
def test_a_form_that_all_chunks_begin_and_end_with_confirms_nothing(line):
    texts = [f"{line}\n{one}\n{line}" for one in windows(overlap=0)]
    keys, runs = sequence(read([*texts[6:], *texts[:6]]))
    assert runs == len(keys)


def test_a_letterhead_at_both_ends_does_not_join_two_versions():
    first, second = windows(), windows(prose(900, seed=4))
    head = "ACME Corp - Confidential"
    texts = [head + first[0], *first[1:-1], first[-1] + head, head + second[0], *second[1:]]
    assert sequence(read(texts))[1] == 2


PHRASE = "comprehensive income\n"  # of 21 characters


def parts_that_meet_in_a_phrase():
    """A text that begins and ends with one phrase, and whose second half was added first."""
    text = PHRASE + TEXT[: 40 + 160 * 12 - 2 * len(PHRASE)] + PHRASE
    texts = windows(text)
    # What the halves really have in common comes elsewhere, too.
    seam = texts[6][:20]
    texts[2] = texts[2][:80] + seam + texts[2][100:]
    return [*texts[6:], *texts[:6]]


def test_a_phrase_where_two_parts_meet_is_no_overlap():
    texts = parts_that_meet_in_a_phrase()
    assert texts[5][-21:] == texts[6][:21] == PHRASE
    assert sequence(read(texts))[0] == [*range(len(texts) - 6, len(texts)), *range(len(texts) - 6)][
        -len(texts) :
    ] or causes(read(texts))


@pytest.mark.parametrize("count", [2, 3, 8])
def test_an_overlap_well_below_the_others_opens_a_run(count):
    first, second = windows()[:count], windows(prose(900, seed=4))[:count]
    assert sequence(read([*first[:-1], first[-1] + PHRASE, PHRASE + second[0], *second[1:]]))[1] == 2


def test_a_source_may_repeat_itself():
    assert len(set(read(["AAAA aaa bbb", "RRR"] * 3).keys)) == 6


@pytest.mark.parametrize("overlap", [0, 40])
def test_reports_in_one_file_that_share_their_boilerplate_were_not_added_again(overlap):
    own = [prose(400, seed=seed) for seed in range(6)]
    shared = windows(prose(600, seed=9), overlap=overlap)
    texts = [
        text
        for before, after in zip(own[::2], own[1::2], strict=True)
        for text in (*windows(before), *shared, *windows(after))
    ]
    order = read(texts)
    assert sequence(order)[0] == [*range(len(texts))]
    assert ADDED_AGAIN not in causes(order)


def test_boilerplate_takes_linear_time():
    footer = "Copyright 2024 ACME Corporation. All rights reserved worldwide."
    pieces = windows(prose(20_000, seed=5), 60, 0)
    texts = [f"{footer} Cover", *(f"{piece} {footer}" for piece in pieces)]
    order = read(texts)
    assert len(order.keys) == len(texts) > 1_500
    assert causes(order) == [INSERTION_ORDER_ONLY]


def test_a_large_source_of_two_writers_takes_linear_time():
    # As in a log, all chunks begin alike.
    pieces = prose(50_000, seed=7).split()
    lines = [f"2024-01-01 {at:08} {' '.join(pieces[at : at + 8])}\n" for at in range(0, len(pieces), 8)]
    texts = ["".join(lines[at : at + 3]) for at in range(0, len(lines) - 1, 2)]
    half = len(texts) // 2
    order = read([text for pair in zip(texts[:half], texts[half:], strict=False) for text in pair])
    assert len(order.keys) > 3_000
    assert order.certainty != "known" or sequence(order)[0] == [*range(0, 2 * half, 2), *range(1, 2 * half, 2)]


def with_offsets(texts, wrong):
    """Offsets of texts with a blank line between them, of which some are wrong."""
    starts = [sum(len(text) + 2 for text in texts[:index]) for index in range(len(texts))]
    return [{"start_index": wrong.get(index, start)} for index, start in enumerate(starts)]


@pytest.mark.parametrize("added_first", [[9], [8, 9], [3]], ids=str)
@pytest.mark.parametrize("line", ["", "| n/a |"])
def test_the_text_of_the_source_is_right_where_the_sequence_is_not(added_first, line):
    """A line that is repeated has no certain place."""
    texts = [prose(20, seed) for seed in range(10)]
    if line:
        texts[5] += f"\n\n{line}\n\n{line}"
    pieces = "\n\n".join(texts).split("\n\n")
    first = [pieces.index(texts[index].split("\n\n")[0]) for index in added_first]
    order = [*first, *(index for index in range(len(pieces)) if index not in first)]
    chunks = [Chunk(pieces[index], rank) for rank, index in enumerate(order)]
    read_from = SourceText("\n\n".join(texts))
    decided = order_of(Listing(chunks, in_sequence=True, complete=True, store="Store"), text=read_from)
    assert [order[index] for index in sequence(decided)[0]] == list(range(len(pieces)))
    assert decided.certainty == "known"


@pytest.mark.parametrize("at", [0, 4], ids=["at its start", "inside"])
@pytest.mark.parametrize("count", [12, 30])
def test_a_short_text_that_the_splitter_found_inside_another_chunk_stays_where_it_was_added(at, count):
    """LangChain's splitters search for an offset in the overlap, where the text may be, too."""
    texts = [prose(20, seed) for seed in range(count)]
    texts[5:7] = ["``` ```python\nprint(1)", "```"]
    metadata = with_offsets(texts, {})
    metadata[6]["start_index"] = metadata[5]["start_index"] + at
    order = read(texts, metadata)
    assert (sequence(order)[0], order.certainty) == (list(range(count)), "known")
    assert [index for index, span in enumerate(order.spans) if span is None] == [6]


@pytest.mark.parametrize("count", [8, 30])
def test_a_text_that_is_repeated_at_once_was_found_too_early(count):
    """LlamaIndex searches for the first place of a text."""
    texts = [prose(20, seed) for seed in range(count)]
    refrain = prose(10, 99)
    texts[2:4] = [f"{texts[2]} {refrain}", refrain]
    metadata = with_offsets(texts, {})
    metadata[3]["start_index"] = metadata[2]["start_index"] + texts[2].index(refrain)
    order = read(texts, metadata)
    assert (sequence(order)[0], order.certainty) == (list(range(count)), "known")
    assert [index for index, span in enumerate(order.spans) if span is None] == [3]


def test_the_last_window_of_a_text_is_the_end_of_the_one_before():
    starts = range(0, len(TEXT), 50)
    order = read([TEXT[start : start + 200] for start in starts], [{"start_index": start} for start in starts])
    assert (order.certainty, None in order.spans) == ("known", False)


def test_offsets_that_the_sequence_refutes_are_no_spans():
    texts = [prose(20, seed) for seed in range(30)]
    order = read(texts, with_offsets(texts, {12: 10**6}))
    assert sequence(order)[0] == list(range(30))
    assert [index for index, span in enumerate(order.spans) if span is None] == [12]


@pytest.mark.parametrize("in_sequence", [True, False])
def test_offsets_that_put_a_chunk_inside_another_are_unchecked_without_the_sequence(in_sequence):
    texts = ["one two", "```python\nprint(1)", "```", "three four"]
    starts = [0, 9, 9, 33]
    places = [3, 1, 0, 2]  # added in no order
    chunks = [Chunk(texts[index], rank, metadata={"start_index": starts[index]}) for rank, index in enumerate(places)]
    assert order_of(Listing(chunks, in_sequence=in_sequence, complete=True)).certainty == "assumed"


def test_offsets_that_begin_again_in_sections_do_not_tell_the_order_of_the_sections():
    """An edited section is added again at the end."""
    sections = [(heading, start) for heading in ("Sails", "Notes", "Oars", "Notes") for start in range(0, 1200, 400)]
    metadata = [{"Header 2": heading, "start_index": start} for heading, start in sections]
    order = read([prose(20, seed) for seed in range(len(sections))], metadata)
    assert (order.certainty, causes(order)) == ("assumed", [INSERTION_ORDER_ONLY])
    # In each of them, it is certain.
    assert order.certainty_with(order.doubts_among([3, 4, 5])) == "known"
    assert order.certainty_with(order.doubts_among([2, 3])) == "assumed"


def test_offsets_of_the_file_confirm_the_sequence_of_its_sections():
    texts = [prose(20, seed) for seed in range(9)]
    metadata = [{"Header 2": "aba"[index // 3], **one} for index, one in enumerate(with_offsets(texts, {}))]
    assert read(texts, metadata).certainty == "known"


@pytest.mark.parametrize(
    "order",
    [
        pytest.param([5, 0, 1, 2, 3, 4, 6, 7, 8, 9], id="all others were added again"),
        pytest.param([5, 8, 0, 1, 2, 3, 4, 6, 7, 9], id="all with an offset"),
        pytest.param([0, 1, 2, 5, 8, 3, 4, 6, 7, 9], id="those after an edit"),
        pytest.param([0, 1, 2, 3, 4, 6, 7, 8, 9, 5], id="an edited one"),
    ],
)
def test_chunks_without_an_offset_are_not_where_an_update_leaves_them(order):
    """After an edit, index() of LangChain adds all chunks again whose offset or text changed."""
    texts = [prose(20, seed) for seed in range(10)]
    metadata = with_offsets(texts, {5: -1, 8: -1})
    decided = read([texts[index] for index in order], [metadata[index] for index in order])
    assert (decided.certainty, causes(decided)) == ("assumed", [INSERTION_ORDER_ONLY])


def test_the_first_and_the_last_chunk_may_be_ones_without_an_offset():
    texts = [prose(20, seed) for seed in range(10)]
    assert read(texts, with_offsets(texts, {0: -1, 1: -1, 5: -1, 9: -1})).certainty == "known"


@pytest.mark.parametrize(
    "fields", [("start_index",), ("chunk_index",), ("start_index", "chunk_index", "chunk_numbering")]
)
def test_an_edited_file_that_was_added_again_has_no_known_order(fields):
    """If it was edited at its start, no chunk of the second version is one of the first."""
    versions = [TEXT, f"{prose(3, 9)} {TEXT}"]
    texts, metadata = [], []
    for number, text in enumerate(versions):
        for index, start in enumerate(range(0, len(text), 200)):
            texts.append(text[start : start + 200])
            about = {"start_index": start, "chunk_index": index, "chunk_numbering": f"n{number}"}
            metadata.append({field: about[field] for field in fields})
    order = read(texts, metadata)
    assert (order.certainty, causes(order)) == ("assumed", [INSERTION_ORDER_ONLY])
    assert order.certainty_with(order.doubts_among(range(len(texts) // 2))) == "known"
