"""`grep` over the sources of a store: which chunks have hits, what is told of them, and when it stops."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from oprag import ContextOptions
from oprag.agents import reading
from oprag.agents.grep import Pattern
from oprag.agents.reading import StoredSources
from oprag.errors import BudgetError, OptionError, SourceReadError
from oprag.pipeline.stitch import stitch
from oprag.stores import adapter
from oprag.stores.adapter import StoreAdapter, StoredChunk, chunks_with


class Rows(list[StoredChunk]):
    """A store."""


class ListedRows(StoreAdapter):
    """Lists the chunks of `Rows`, and has no other filter than that of no keywords."""

    in_insertion_order = True

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        return chunks_with(self.store, field, sources)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(adapter, "_registered", {})
    adapter.register_store(Rows, ListedRows)


def rows_of(texts: Sequence[str], source: str | None = "book", starts: Sequence[int] = ()) -> Rows:
    """The chunks of a source, stamped unless they have offsets."""
    rows = Rows()
    for number, text in enumerate(texts):
        place = {"start_index": starts[number]} if starts else {"chunk_index": number}
        rows.append(StoredChunk(f"{source} {number}", text, place if source is None else {"source": source, **place}))
    return rows


def sources_of(rows: Rows, budget: int = 4_000, **options: Any) -> StoredSources:
    def count(text: str) -> int:
        return len(text.split())

    return StoredSources(
        lambda: ListedRows(rows),
        ContextOptions(count_tokens=count),
        lambda row, rank: row.as_chunk(rank),
        token_budget=budget,
        **options,
    )


def test_a_hit_may_extend_over_chunks():
    found = sources_of(rows_of(["Call him the white", "whale. It swims", "away."])).grep("white whale")
    assert [chunk.text for chunk in found.chunks] == ["Call him the white", "whale. It swims"]
    assert [chunk.rank for chunk in found.chunks] == [0, 1]
    assert found.note == "(1 hit in 2 chunks: chunks 1, 2 of 3 of book)"
    assert found.text == f"book\nCall him the white\n\nwhale. It swims\n\n{found.note}"


@pytest.mark.parametrize("offsets", [True, False])
def test_a_hit_in_an_overlap_counts_once(offsets: bool):
    text = "It was a bright cold day in April, and the clocks were striking thirteen. He slipped through the doors."
    spans = [(0, 60), (30, 90), (60, len(text))]
    starts = [start for start, _ in spans] if offsets else []
    sources = sources_of(rows_of([text[start:end] for start, end in spans], starts=starts))
    found = sources.grep("the clocks")
    # The second chunk contains it, too, and the whole of the next one.
    assert found.note == "(1 hit in 1 chunk: chunk 1 of 3 of book)"
    assert "striking thirteen" not in found.text
    assert sources.grep("striking").note.startswith("(1 hit in 1 chunk: ")


def test_sources_come_by_name_and_chunks_in_order():
    rows = Rows([*rows_of(["x two", "x three"], "b 10"), *rows_of(["x"], "b 2"), *rows_of(["x alone"], None)])
    mixed = Rows(reversed(rows))
    found = sources_of(mixed).grep("x")
    assert [chunk.text for chunk in found.chunks] == ["x alone", "x", "x two", "x three"]
    assert found.note == (
        "(4 hits in 4 chunks: chunk 1 of 1 of an unnamed source; chunk 1 of 1 of b 2; chunks 1, 2 of 2 of b 10)"
    )
    assert sources_of(mixed).grep("x", "b 2").note == "(1 hit in 1 chunk: chunk 1 of 1 of b 2)"
    assert sources_of(mixed).grep("x", " ").note == found.note
    with pytest.raises(OptionError, match="unknown source b; did you mean"):
        sources_of(mixed).grep("x", "b")


def test_an_unknown_order_is_searched():
    rows = Rows(StoredChunk(str(number), f"Part {number}.", {"source": "book"}) for number in range(3))
    sources = sources_of(rows, store_order=False)
    with pytest.raises(SourceReadError, match="the order of its chunks is not known"):
        sources.range("book", 1, 2)
    assert sources.grep("Part 1").note == "(1 hit in 1 chunk: chunk 2 of 3 of book (the order is uncertain))"


def test_the_limit_and_the_budget():
    rows = rows_of([f"Part {number} of the book." for number in range(30)])
    found = sources_of(rows).grep("Part", limit=2)
    assert len(found.chunks) == 2
    more = "28 more chunks not shown: name a source, or use a longer pattern"
    assert found.note == f"(30 hits in 30 chunks: chunks 1, 2 of 30 of book; {more})"
    for budget in (35, 60, 100):
        found = sources_of(rows, budget).grep("Part", limit=10**30)
        assert len(found.text.split()) <= budget
        assert found.note.endswith(f"; {30 - len(found.chunks)} {more[3:]})")
    with pytest.raises(BudgetError, match="chunk 1 of book has 5 tokens, more than the token budget of 4"):
        sources_of(rows, 4).grep("Part")


def test_what_was_found_before_the_time_was_up(monkeypatch: pytest.MonkeyPatch):
    sources = sources_of(Rows([*rows_of(["Part 1.", "Part 2."], "a"), *rows_of(["Part 1."], "b")]))
    monkeypatch.setattr(reading, "Pattern", partial(Pattern, seconds=-1))
    stopped = "stopped after 1 s: name a source, or use a simpler pattern"
    assert sources.grep("Part").text == f"(no hits in 0 chunks; {stopped})"
    now = iter(range(99))
    monkeypatch.setattr("oprag.agents.grep.time.monotonic", lambda: next(now))
    monkeypatch.setattr(reading, "Pattern", partial(Pattern, seconds=4.5))
    found = sources.grep("Part")
    assert found.note == f"(2 hits in 2 chunks: chunks 1, 2 of 2 of a; {stopped})"
    assert [chunk.source for chunk in found.chunks] == ["a", "a"]


def test_many_hits_in_small_chunks_are_read_at_once(monkeypatch: pytest.MonkeyPatch):
    calls = Mock(wraps=stitch)
    monkeypatch.setattr(reading, "stitch", calls)
    found = sources_of(rows_of(["x"] * 5_000), 1_000).grep("x", limit=10**6)
    assert 300 < len(found.chunks) < 500
    assert calls.call_count < 20
