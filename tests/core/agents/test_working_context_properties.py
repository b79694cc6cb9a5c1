"""What holds for every working context, whatever was searched for in whatever sequence.

100 generated cases a property; 10,000 with HYPOTHESIS_PROFILE=nightly (see conftest.py). Each word of the sources
occurs once, and chunks are cut between words, so the words of a text say which characters of the sources are shown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, Delta, Place, PositionKind, Span, WorkingContext, build_context
from oprag._internal.tokens import approximate_tokens
from oprag.errors import MissingPositionError, OpragError, OptionError
from tests.core.test_properties import common, retrieved, snapshot

pytestmark = pytest.mark.filterwarnings("ignore::oprag.errors.OpragWarning")

PAGE = 20  # words
SOURCES = {name: [f"{name}{number:03d}" for number in range(60)] for name in ("alder", "birch", "cedar")}
WORD = re.compile(r"(?:alder|birch|cedar)\d{3}")
POINTER = re.compile(r"((?:\[\d+\], )*\[\d+\]) \((?:already )?shown")
LABEL = re.compile(r"^\[(\d+)\](?!(?:, \[\d+\])* \((?:already )?shown)", re.MULTILINE)
MARKER = re.compile(r"\[(\d+)\]")

# One piece of a source: its text, what it says about its place, and its id.
Piece = tuple[str, dict[str, Any], dict[str, Any], str | None]


def piece(name: str, kind: str, first: int, last: int, identity: str | None) -> Piece:
    """The words from the first to the last one."""
    words = SOURCES[name]
    start = sum(len(word) + 1 for word in words[:first])
    text = " ".join(words[first:last])
    page = first // PAGE
    on_page = start - sum(len(word) + 1 for word in words[: page * PAGE])
    metadata: dict[str, Any] = {"source": f"{name}.md"}
    fields: dict[str, Any] = {}
    match kind:
        case "offset":
            metadata["start_index"] = start
        case "stamped":
            metadata |= {"chunk_index": 100 * first + last, "start_index": start}
        case "page and offset":
            metadata |= {"page": page, "start_index": on_page}
        case "span":
            fields["span"] = Span(start, start + len(text))
        case "located":
            span = Span(start, start + len(text))
            fields["place"] = Place(span[:2], PositionKind.OFFSET, "text of the source", span)
        case "store":
            fields["place"] = Place(
                (0, 100 * first + last), PositionKind.STORE, "a store", run=Span(start, start + len(text), 0)
            )
        case "page":
            metadata["page"] = page
        case "nothing":
            pass
    return text, metadata, fields, identity


POSITIONED = ["offset", "stamped", "page and offset", "span", "located"]


@st.composite
def searches(draw: st.DrawFn, kinds: Sequence[str] = POSITIONED, ids: bool = True) -> list[list[Piece]]:
    """What several searches found, best first: pieces of a few sources, of one or several splitters."""
    pool: list[Piece] = []
    for name in draw(st.lists(st.sampled_from(list(SOURCES)), min_size=1, unique=True)):
        kind = draw(st.sampled_from(kinds))
        cuts = draw(st.lists(st.tuples(st.integers(0, 55), st.integers(1, 20)), min_size=1, max_size=9, unique=True))
        spans = {(first, min(60, first + length)) for first, length in cuts}
        if "page" in kind:
            spans = {(first, min(last, (first // PAGE + 1) * PAGE)) for first, last in spans}
        pool += [
            piece(name, kind, first, last, draw(st.sampled_from([None, f"{name}-{first}-{last}"])) if ids else None)
            for first, last in sorted(spans)
        ]
    return draw(st.lists(st.lists(st.sampled_from(pool), max_size=8, unique_by=repr), min_size=1, max_size=5))


def chunks(found: Iterable[Piece]) -> list[Chunk]:
    return [
        Chunk(text, rank, metadata=metadata, id=identity, **fields)
        for rank, (text, metadata, fields, identity) in enumerate(found)
    ]


def added(working: WorkingContext, found: Iterable[Iterable[Piece]]) -> list[Delta]:
    return [working.add(chunks(one)) for one in found]


def words(text: str) -> Counter[str]:
    return Counter(WORD.findall(text))


def words_of(found: Iterable[Iterable[Piece]]) -> Counter[str]:
    """Each word that was found, once."""
    return Counter({word for one in found for text, *_ in one for word in text.split()})


def labels(text: str) -> list[int]:
    """The numbers that have text."""
    return [int(number) for number in LABEL.findall(text)]


def check_pointers(texts: Iterable[str]) -> None:
    """Every number in brackets has text in the same text or an earlier one, and each has it once a text."""
    shown: set[int] = set()
    for text in texts:
        own = labels(text)
        assert len(set(own)) == len(own)
        pointed = {int(number) for match in POINTER.findall(text) for number in MARKER.findall(match)}
        assert pointed <= shown | set(own)
        shown.update(own)
        assert {int(number) for number in MARKER.findall(text)} <= shown


budgets = st.none() | st.integers(1, 400)
counters = st.sampled_from([approximate_tokens, len, lambda text: len(text.split()), lambda text: len(text) ** 2 // 90])


def check_repeats(texts: Iterable[str], working: WorkingContext) -> None:
    """No number has text twice, and no text is repeated within a result or by chunks that have it only once."""
    shown: list[int] = []
    for text in texts:
        assert set(words(text).values()) <= {1}
        shown += labels(text)
    assert len(set(shown)) == len(shown)
    having = sum((words(working.chunk(number).text) for number in shown), Counter())
    assert sum(map(words, texts), Counter()) <= having


@given(searches())
def test_no_chunk_is_shown_twice_and_no_text_is_lost(found):
    working = WorkingContext()
    deltas = added(working, found)
    texts = [delta.text for delta in deltas]
    assert set(words("".join(texts))) == set(words_of(found))
    check_repeats(texts, working)
    check_pointers(texts)


@given(searches([*POSITIONED, "page", "nothing", "store"]))
def test_a_chunk_is_gathered_once_with_one_number_and_its_best_rank(found):
    working = WorkingContext()
    numbers: dict[str, int] = {}
    ranks: dict[str, int] = {}
    for one in found:
        delta = working.add(chunks(one))
        assert sorted(delta.ranks) == list(range(len(one)))
        assert set(delta.ranks.values()) == set(delta.numbers)
        assert sorted((*delta.new, *delta.repeated, *delta.over_budget)) == sorted(delta.numbers)
        for rank, (text, metadata, *_) in enumerate(one):
            key = f"{metadata} {text}"
            assert numbers.setdefault(key, delta.ranks[rank]) == delta.ranks[rank]
            ranks[key] = min(rank, ranks.get(key, rank))
            assert working.chunk(delta.ranks[rank]).text == text
    assert sorted(numbers.values()) == list(range(1, len(working) + 1))
    for key, number in numbers.items():
        assert working.chunk(number).rank == ranks[key]


@given(searches(ids=False), st.data())
def test_new_ids_are_the_same_chunks_where_the_place_says_so(found, data):
    working = WorkingContext()
    deltas = added(working, found)
    for one, delta in zip(found, deltas, strict=True):
        again = [Chunk(*(text, rank), metadata=metadata, id=f"new {text}", **fields)
                 for rank, (text, metadata, fields, _) in enumerate(one)]  # fmt: skip
        repeated = working.add(again)
        assert repeated.ranks == delta.ranks
        assert repeated.new == ()


@given(searches([*POSITIONED, "page", "nothing", "store"]))
def test_an_empty_prompt_gets_the_deltas_again(found):
    working = WorkingContext()
    deltas = added(working, found)
    assert working.layout() == [delta.text for delta in deltas]
    for name, one, delta in zip(working.searches, found, deltas, strict=True):
        assert working.is_result_of(name, delta.text)
        assert not working.is_result_of(name, f"{delta.text} changed")
        with pytest.raises(OptionError, match="was already added"):
            working.add(chunks(one), search=name)
    assert working.layout() == [delta.text for delta in deltas]


@given(searches(), budgets, counters, st.data())
def test_any_selection_of_the_searches_is_whole_and_does_not_depend_on_later_ones(found, budget, counter, data):
    working = WorkingContext(token_budget=budget, count_tokens=counter)
    seen: list[str] = []
    for one in found:
        seen.append(working.add(chunks(one)).text)
        assert working.layout() == seen
    names = list(working.searches)
    chosen = [name for name in names if data.draw(st.booleans())]
    texts = working.layout(chosen)
    check_pointers(texts)
    for length in range(len(chosen)):
        assert working.layout(chosen[:length]) == texts[:length]
    check_repeats(texts, working)
    if budget is None:
        assert set(words("".join(texts))) == set(
            words_of(one for name, one in zip(names, found, strict=True) if name in chosen)
        )


@given(searches(), budgets, st.data())
def test_what_was_forgotten_is_shown_again_when_it_is_found_again(every, budget, data):
    found, later = every[: len(every) // 2 + 1], every[len(every) // 2 + 1 :]
    working = WorkingContext(token_budget=budget)
    deltas = dict(zip(map(str, range(1, 99)), added(working, found), strict=False))
    lost = {name for name in deltas if data.draw(st.booleans())}
    working.forget([*lost, "unknown"])
    texts = [delta.text for name, delta in deltas.items() if name not in lost]
    assert working.tokens == sum(delta.tokens for name, delta in deltas.items() if name not in lost)
    numbered = {number for text in texts for number in labels(text)}
    for one in [*found, *later]:
        delta = working.add(chunks(one))
        texts.append(delta.text)
        check_repeats(texts, working)
        numbered.update(labels(delta.text))
        assert {int(number) for number in MARKER.findall(delta.text)} <= numbered
        if not delta.over_budget:
            assert set(words_of([one])) <= set(words("".join(texts)))


@given(searches([*POSITIONED, "page", "nothing"]), st.sampled_from(["source", "rank", "edges"]), st.booleans())
def test_the_context_is_that_of_all_chunks(found, order, stitch):
    working = WorkingContext(order=order, stitch=stitch)
    best: dict[int, Chunk] = {}
    for one in found:
        given_chunks = chunks(one)
        delta = working.add(given_chunks)
        for chunk in given_chunks:
            known = best.setdefault(delta.ranks[chunk.rank], chunk)
            if chunk.rank < known.rank:
                best[delta.ranks[chunk.rank]] = chunk
    ordered = sorted(best.items(), key=lambda item: (item[1].rank, item[0]))
    union = [
        Chunk(one.text, rank, metadata=one.metadata, id=one.id, span=one.span, place=one.place)
        for rank, (_, one) in enumerate(ordered)
    ]
    expected = build_context(union, order=order, stitch=stitch)
    context = working.context()
    assert context.text == expected.text
    assert [chunk.rank for chunk in context.kept] == [chunk.rank for chunk in expected.kept]
    assert [passage.spans for passage in context.passages] == [passage.spans for passage in expected.passages]
    assert context.sources == expected.sources


@given(searches(), st.data())
def test_the_compact_layout_is_the_context_with_numbers(found, data):
    working = WorkingContext()
    added(working, found)
    names = list(working.searches)
    chosen = [name for name in names if data.draw(st.booleans())] or names
    *before, last = working.layout(chosen, "compact")
    assert words(last) == words_of(one for name, one in zip(names, found, strict=True) if name in chosen)
    if chosen == names:
        assert WORD.findall(last) == WORD.findall(working.context().text)
    numbers = set(labels(last))
    for text in before:
        assert words(text) == Counter()
        assert {int(number) for number in MARKER.findall(text)} <= numbers
    check_pointers([last])


@given(searches([*POSITIONED, "page", "nothing", "store"]), st.data())
def test_what_was_derived_for_one_prompt_or_copy_changes_no_other(found, data):
    copies = [WorkingContext()]
    for one in found:
        working = data.draw(st.sampled_from(copies))
        if data.draw(st.booleans()):
            copies.append(WorkingContext.from_dict(working.to_dict()))
        working.add(chunks(one))
        chosen = [name for name in working.searches if data.draw(st.booleans())] or list(working.searches)
        for each in copies:
            names = chosen if each is working else list(each.searches)
            saved = json.loads(json.dumps(each.to_dict()))
            compact = each.layout(names, "compact")
            assert compact == WorkingContext.from_dict(saved).layout(names, "compact")
            # With a budget, the whole context is assembled.
            assembled = WorkingContext.from_dict(saved, token_budget=10**9)
            assert compact == assembled.layout(names, "compact")


@given(searches([*POSITIONED, "page", "nothing"]), st.integers(1, 400), counters)
def test_what_documents_contribute_fits_the_budget(found, budget, counter):
    working = WorkingContext(token_budget=budget, count_tokens=counter)
    for one in found:
        delta = working.add(chunks(one))
        assert delta.tokens == counter(delta.text)
        if delta.new:
            assert working.tokens <= budget
        check_pointers(working.layout())
    *before, last = working.layout(layout="compact")
    assert not labels(last) or counter(last) <= budget
    for text in before:
        assert {int(number) for number in MARKER.findall(text)} <= set(labels(last))


@given(searches(["store", "located"]), st.data())
def test_a_place_that_is_learned_later_changes_nothing_that_was_shown(found, data):
    working = WorkingContext()
    seen: list[str] = []
    for one in found:
        known = [
            (text, metadata, fields if data.draw(st.booleans()) else {}, name) for text, metadata, fields, name in one
        ]
        seen.append(working.add(chunks(known)).text)
        assert working.layout() == seen
        working = WorkingContext.from_dict(json.loads(json.dumps(working.to_dict())))
        assert working.layout() == seen
        check_pointers(seen)
    assert set(words("".join(seen))) == set(words_of(found))


@given(searches([*POSITIONED, "page", "nothing", "store"]), budgets, st.booleans(), st.data())
def test_a_checkpoint_goes_on_as_the_original(found, budget, stitch, data):
    options = {"token_budget": budget, "stitch": stitch}
    working, restored = WorkingContext(**options), WorkingContext(**options)
    for one in found:
        assert restored.add(chunks(one)) == working.add(chunks(one))
        if data.draw(st.booleans()):
            name = data.draw(st.sampled_from(working.searches))
            working.forget([name])
            restored.forget([name])
        saved = json.dumps(restored.to_dict(), allow_nan=False)
        restored = WorkingContext.from_dict(json.loads(saved), **options)
        assert json.dumps(restored.to_dict()) == saved == json.dumps(working.to_dict())
        assert restored.layout() == working.layout()
        assert restored.layout(layout="compact") == working.layout(layout="compact")
        assert restored.tokens == working.tokens
    try:
        assert restored.context().text == working.context().text
    except OpragError:
        with pytest.raises(OpragError):
            working.context()


@given(
    st.lists(retrieved(), max_size=3), st.fixed_dictionaries({name: one for name, one in common.items() if name != "k"})
)
def test_dirty_chunks_are_gathered_or_refused_and_never_changed(found, options):
    before = [snapshot(one) for one in found]
    working = WorkingContext(**options)
    texts: list[str] = []
    for one in found:
        try:
            delta = working.add(one)
        except OpragError:
            continue
        texts.append(delta.text)
        again = working.add(one)
        texts.append(again.text)
        assert again.ranks == delta.ranks
        assert set(again.new) <= set(delta.over_budget)
    assert working.layout() == texts
    saved = json.dumps(working.to_dict(), allow_nan=False)
    restored = WorkingContext.from_dict(json.loads(saved), **options)
    assert json.dumps(restored.to_dict()) == saved
    assert restored.layout() == texts
    contexts = []
    for one in (working, restored):
        try:
            contexts.append(one.context().text)
        except OpragError as error:
            contexts.append(type(error).__name__)
    assert contexts[0] == contexts[1]
    with suppress(MissingPositionError):
        assert len(working.layout(layout="compact")) == len(texts)
    assert [snapshot(one) for one in found] == before
