"""What holds for every context, whatever is in the metadata.

100 generated cases a property; 10,000 with HYPOTHESIS_PROFILE=nightly (see conftest.py).
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import Chunk, Context, Span, arrange, build_context
from oprag.errors import OpragError
from oprag.positions.source_order import Listing, order_of
from tests.helpers import prose, ranks

pytestmark = pytest.mark.filterwarnings("ignore::oprag.errors.OpragWarning")

TEXT = prose(40, seed=13)

# fmt: off
KEYS = [
    "source", "file_path", "url", "file_name", "ref_doc_id", "document_id", "chunk_index", "chunk_numbering",
    "chunk_idx", "split_id",
    "page", "page_number", "page_label", "start_index", "end_index", "start_char_idx", "end_char_idx", "char_start",
    "row", "seq_num", "order", "line", "title", "section", "start_seconds",
]
# fmt: on

# fmt: off
DIRTY: list[Any] = [
    None, True, False, -1, "-1", -0.0, 0, 1, 2, 3, 9, 2.0, 2.5, math.nan, math.inf, -math.inf,
    "10", "9", " 3 ", "007", "2.0", "1e2", "nan", "inf", "", " ", "iv", "IX", "A-2", "A-10", "doc10", "doc2",
    "a\nb", "\ud800", "x" * 5000, "9" * 5000, 10**30, 10**5000, -(10**5000), 2**53, 2**53 + 1,
    [], [1], ["source", None], {}, {"page": 1}, {"a": {"b": [{"c": None}]}}, (1, "2"), b"1",
    Decimal(3), Decimal("2.5"), Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), Decimal("1e999"),
    Fraction(1, 3), 1 + 2j,
    np.int64(3), np.int8(-128), np.uint8(2), np.int64(2**53 + 1), np.float32(1.5), np.float64("nan"), np.bool_(True),
    np.str_("4"), np.datetime64("2024-01-01"), np.array([1, 2]), np.array(3),
    date(2024, 1, 2), datetime(2024, 1, 2, 3, tzinfo=UTC), object(), len,
]
# fmt: on

numbers = st.integers(0, len(TEXT))
offsets = st.sampled_from([0, 3, 10, 11, 40, 41, 90]) | numbers


@st.composite
def pieces(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A text with metadata: true offsets, dirty values, or both."""
    start = draw(offsets)
    end = min(len(TEXT), start + draw(st.integers(0, 50)))
    metadata: dict[str, Any] = {}
    if draw(st.booleans()):
        metadata |= {"start_index": start, "source": draw(st.sampled_from("ab"))}
    if draw(st.booleans()):
        metadata |= {"chunk_index": draw(st.integers(0, 9)), "source": draw(st.sampled_from("ab"))}
    metadata |= draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(DIRTY), max_size=4))
    return draw(st.sampled_from([TEXT[start:end], TEXT[start:end], "", "same", "la la la la la la"])), metadata


given_sources: st.SearchStrategy[Any] = st.sampled_from([None, None, "a", "", 5])
names = st.sampled_from([None, None, None, "a", "b", "c", "d"])
families = st.lists(st.sampled_from("abcd"), max_size=2).map(tuple)
scores: st.SearchStrategy[Any] = st.sampled_from([None, 0.5, 0.25, -1.0, math.nan, math.inf, 3, np.float32(0.5)])
spans = st.none() | st.none() | st.builds(Span, offsets, offsets) | st.just(Span(-1, None))  # type: ignore[arg-type]


@st.composite
def retrieved(draw: st.DrawFn) -> list[Chunk]:
    """Chunks as stores of all kinds give them, with distinct ranks in any sequence."""
    drawn = draw(st.lists(pieces(), max_size=7))
    places = draw(st.permutations(range(len(drawn))))
    linked = draw(st.booleans())
    return [
        Chunk(
            text,
            rank,
            source=draw(given_sources),
            metadata=metadata,
            score=draw(scores),
            id=draw(names),
            document_id=draw(names),
            previous_id=draw(names) if linked else None,
            next_id=draw(names) if linked else None,
            parent_id=draw(names) if linked else None,
            child_ids=draw(families) if linked else (),
            span=draw(spans),
        )
        for rank, (text, metadata) in zip(places, drawn, strict=True)
    ]


def roots(text: str) -> float:
    return math.sqrt(len(text))


def squares(text: str) -> int:
    return len(text) ** 2 // 40


def overhead(text: str) -> int:
    return len(text) + 3


def by_page(chunk: Chunk) -> Any:
    return chunk.metadata.get("page")


def by_index(chunk: Chunk) -> Any:
    return [chunk.metadata.get("chunk_index"), chunk.metadata.get("title", 0)]


def above(passage: Any) -> str:
    return "" if passage.source is None else f"# {passage.source} {len(passage.chunks)}"


limits = st.none() | st.none() | st.integers(1, 6)
common = {
    "k": limits,
    "token_budget": st.none() | st.integers(1, 150),
    "count_tokens": st.sampled_from([len, roots, squares, overhead]),
    "on_missing_position": st.sampled_from(["last", "first", "drop", "error"]),
    "on_uncertain": st.sampled_from(["warn", "ignore"]),
    "source_key": st.sampled_from([None, None, "title", ("title", "url"), by_page]),
    "position_key": st.sampled_from([None, None, None, "chunk_index", ("page", "start_index"), by_index]),
    "stitch": st.booleans(),
    "separator": st.sampled_from(["\n\n", "", "|"]),
    "gap": st.sampled_from([None, "[...]"]),
    "header": st.sampled_from([None, "{source} {page} {start}-{end} {rank}", "{section}", above]),
}
in_source_order = st.fixed_dictionaries(common)
any_options = st.fixed_dictionaries(
    {
        **common,
        "order": st.sampled_from(["source", "source", "rank", "reverse_rank", "edges", "random"]),
        "source_ranking": st.sampled_from(["best_first", "best_last", "score_sum", "name", len]),
        "seed": st.integers(0, 3),
    }
)


def built(chunks: list[Chunk], options: dict[str, Any]) -> Context | None:
    """The context, or None where oprag refuses; any other error is a failure."""
    try:
        return build_context(chunks, **options)
    except OpragError:
        return None


def told(context: Context | None) -> Any:
    """Everything about a context in values that compare, whatever the metadata hold."""
    if context is None:
        return None
    return (
        context.text,
        ranks(context.kept),
        [(drop.chunk.rank, drop.reason, drop.value, drop.detail) for drop in context.dropped],
        [(ranks(passage.chunks), passage.spans, passage.text) for passage in context.passages],
        context.sources,
        context.tokens,
        context.explain(),
    )


@given(retrieved())
def test_a_listing_of_any_chunks_has_places(chunks: list[Chunk]):
    listing = Listing([*chunks, *chunks], in_sequence=True, complete=True, store="a store")
    assert len(order_of(listing).places) == len(listing.chunks)


@given(retrieved(), any_options)
def test_nothing_is_lost_repeated_or_over_the_budget(chunks, options):
    context = built(chunks, options)
    if context is None:
        return
    dropped = [drop.chunk.rank for drop in context.dropped]
    assert Counter(ranks(context.kept) + dropped) == Counter(ranks(chunks))
    assert dropped == sorted(dropped)
    if options["token_budget"] is not None:
        assert context.tokens <= options["token_budget"]
    if options["k"] is not None:
        assert len(context.kept) <= options["k"]
    assert json.loads(json.dumps(context.to_dict(), allow_nan=False))["text"] == context.text
    assert max(len(repr(one)) for one in (context, *context.kept, *context.passages)) < 1_000
    by_rank = {chunk.rank: chunk for chunk in chunks}
    for chunk in context.kept:
        assert (chunk.text, chunk.score, chunk.id) == (
            by_rank[chunk.rank].text,
            by_rank[chunk.rank].score,
            by_rank[chunk.rank].id,
        )
        assert chunk.metadata is by_rank[chunk.rank].metadata


@given(retrieved(), any_options)
def test_passages_hold_the_text_of_every_kept_chunk(chunks, options):
    context = built(chunks, options)
    if context is None:
        return
    assert [chunk.rank for passage in context.passages for chunk in passage.chunks] == ranks(context.kept)
    for passage in context.passages:
        assert passage.text in context.text
        for chunk in passage.chunks:
            assert chunk.text in passage.text
        if not options["stitch"]:
            assert len(passage.chunks) == 1


@given(retrieved(), any_options, st.randoms(use_true_random=False))
def test_the_sequence_of_the_input_changes_nothing(chunks, options, generator: random.Random):
    shuffled = list(chunks)
    generator.shuffle(shuffled)
    assert told(built(shuffled, options)) == told(built(chunks, options))


def snapshot(chunks: list[Chunk]) -> list[Any]:
    # Not repr: whole numbers can be too long to be written.
    return [
        (
            {name: value for name, value in vars(chunk).items() if name != "metadata"},
            id(chunk.metadata),
            [(key, id(value)) for key, value in chunk.metadata.items()],
        )
        for chunk in chunks
    ]


@given(retrieved(), any_options)
def test_nothing_that_was_given_is_changed(chunks, options):
    before = snapshot(chunks)
    order = list(chunks)
    dirty = {key: list(value) for key, value in enumerate(DIRTY) if isinstance(value, list | dict)}
    built(chunks, options)
    assert snapshot(chunks) == before
    assert all(one is other for one, other in zip(chunks, order, strict=True))
    assert dirty == {key: list(value) for key, value in enumerate(DIRTY) if isinstance(value, list | dict)}


@given(retrieved(), in_source_order)
def test_assembling_what_was_kept_gives_the_same_again(chunks, options):
    context = built(chunks, options)
    if context is None or not context.kept:
        return
    again = build_context(context.kept, **options)
    assert again.text == context.text
    assert ranks(again.kept) == ranks(context.kept)
    assert again.dropped == ()
    assert [passage.spans for passage in again.passages] == [passage.spans for passage in context.passages]
    assert again.tokens == context.tokens


@given(retrieved(), any_options)
def test_arranging_orders_as_a_context_does(chunks, options):
    orders = ("order", "seed", "source_ranking", "on_missing_position", "source_key", "position_key")
    chosen = {name: options[name] for name in orders}
    try:
        arranged = arrange(chunks, **chosen)
    except OpragError:
        assert built(chunks, chosen) is None
        return
    context = build_context(chunks, **chosen)
    duplicates = {drop.chunk.rank for drop in context.dropped if drop.reason == "duplicate"}
    if chosen["order"] in ("source", "rank", "reverse_rank") and chosen["source_ranking"] in (
        "best_first",
        "best_last",
        "name",
    ):
        assert [rank for rank in ranks(arranged) if rank not in duplicates] == ranks(context.kept)
    else:
        assert {*ranks(arranged)} - duplicates == {*ranks(context.kept)}
