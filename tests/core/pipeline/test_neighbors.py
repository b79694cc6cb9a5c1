from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from oprag import Chunk, build_context
from oprag.errors import ChunkError, PositionWarning
from oprag.pipeline.neighbors import neighbors_among
from tests.helpers import hit, ranks, texts

Reader = Callable[[Chunk, int], Iterable[Chunk]]


def book(size: int, **metadata: Any) -> list[Chunk]:
    """All chunks of a source; as in most stores, what is read by its place has no rank that means anything."""
    return [hit(f"text {place}", 0, chunk_index=place, **metadata) for place in range(size)]


def reader(*books: list[Chunk]) -> Reader:
    """Reads the chunks around one by its place, the one itself among them, in no particular sequence."""

    def read(chunk: Chunk, number: int) -> list[Chunk]:
        place = chunk.metadata["chunk_index"]
        (of_source,) = [one for one in books if one[0].metadata["source"] == chunk.source]
        return of_source[max(0, place - number) : place + number + 1][::-1]

    return read


def found(place: int, rank: int, score: float | None = None, **metadata: Any) -> Chunk:
    chunk = hit(f"text {place}", rank, chunk_index=place, **metadata)
    return Chunk(**{**vars(chunk), "score": score})


def places(chunks: Iterable[Chunk]) -> list[int]:
    return [chunk.metadata["chunk_index"] for chunk in chunks]


def test_neighbours_are_merged_and_in_order_and_scores_are_kept():
    # F2: LlamaIndex's PrevNextNodePostprocessor gives 6 7 8 1 2 3 4 for hits 7, 2, 3, and loses the score of 2.
    hits = [found(7, 0, 0.9), found(2, 1, 0.8), found(3, 2, 0.7)]
    context = build_context(hits, neighbors=1, read_neighbors=reader(book(10)), gap="[...]", separator="\n")
    assert places(context.kept) == [1, 2, 3, 4, 6, 7, 8]
    assert context.text == "text 1\ntext 2\ntext 3\ntext 4\n[...]\ntext 6\ntext 7\ntext 8"
    assert [chunk.score for chunk in context.kept] == [None, 0.8, 0.7, None, None, 0.9, None]
    assert [chunk.neighbor_of for chunk in context.kept] == [1, None, None, 2, 0, None, 0]
    assert len(set(ranks(context.kept))) == 7
    assert context.dropped == ()
    assert "neighbor of" in context.explain()
    assert context.to_dict()["kept"][0]["neighbor_of"] == 1


def test_what_repeats_a_kept_chunk_does_not_come_back():
    def pointing(chunk: Chunk, *vector: float) -> Chunk:
        return Chunk(**{**vars(chunk), "vector": np.array(vector, dtype=np.float32)})

    hits = [pointing(found(5, 0), 1, 0), pointing(found(6, 1), 1, 0), pointing(found(4, 2), 0, 1)]
    context = build_context(
        hits,
        question_vector=np.array([1, 0], dtype=np.float32),
        similarity_threshold=0.5,
        redundancy_threshold=0.9,
        neighbors=1,
        read_neighbors=reader(book(10)),
    )
    # Chunk 4 is unlike the question, as any neighbour may be; it keeps what is known of it.
    assert places(context.kept) == [4, 5]
    assert (context.kept[0].similarity, context.kept[0].rank) == (0, 2)
    assert [(drop.chunk.rank, drop.reason, drop.twin) for drop in context.dropped] == [(1, "redundancy_threshold", 0)]
    again = context.with_thresholds(redundancy_threshold=None)
    assert places(again.kept) == [4, 5, 6, 7]


def test_neighbours_stay_in_their_source():
    books = [book(10), book(10, source="other")]
    hits = [found(2, 0), found(2, 1, source="other")]
    asked: list[int] = []

    def read(chunk: Chunk, number: int) -> Iterable[Chunk]:
        asked.append(number)
        return reader(*books)(chunk, number)

    context = build_context(hits, neighbors=1, read_neighbors=read)
    assert asked == [1, 1]  # no source is read whole
    assert [(chunk.source, chunk.metadata["chunk_index"]) for chunk in context.kept] == [
        *(("book", place) for place in (1, 2, 3)),
        *(("other", place) for place in (1, 2, 3)),
    ]
    with pytest.raises(ChunkError, match=r"neighbors of a chunk \(rank 0, source 'book'\) must have the same source"):
        build_context([found(2, 0)], neighbors=1, read_neighbors=lambda chunk, number: books[1])


@pytest.mark.parametrize("metadata", [{}, {"page": 3}], ids=["no position", "a page that many share"])
def test_a_chunk_whose_place_is_not_known_has_no_neighbours(metadata):
    chunk = Chunk("text", 0, source="book", metadata=metadata)
    context = build_context([chunk], neighbors=1, read_neighbors=lambda one, number: book(3))
    assert texts(context.kept) == ["text"]


@pytest.mark.parametrize("given", [["text"], [None], [object()]])
def test_something_else_than_chunks_is_refused(given):
    with pytest.raises(ChunkError, match=r"expected oprag\.Chunk objects as neighbors"):
        build_context([found(2, 0)], neighbors=1, read_neighbors=lambda chunk, number: given)


def test_the_chunks_around_one_in_its_source():
    book = [hit(f"text {place}", 0, chunk_index=place) for place in (3, 1, 0, 4, 2)]
    other = [hit(f"text {place}", 0, chunk_index=place, source="other") for place in range(5)]
    read = neighbors_among([*book, *other])
    assert texts(read(book[-1], 1)) == ["text 1", "text 2", "text 3"]
    assert {chunk.metadata["source"] for chunk in read(book[-1], 9)} == {"book"}
    assert texts(read(other[0], 2)) == ["text 0", "text 1", "text 2"]


def test_a_chunk_is_known_by_its_id_and_text_and_else_by_its_metadata():
    chunks = [hit("same", 0, chunk_index=place) for place in range(3)]
    read = neighbors_among(chunks)
    found = hit("same", 7, chunk_index=1, relevance_score=0.5)
    assert [chunk.metadata["chunk_index"] for chunk in read(found, 1)] == [0, 1, 2]
    assert list(read(hit("another", 0, chunk_index=1), 1)) == []
    assert list(read(hit("same", 0, chunk_index=9), 1)) == []
    named = [Chunk("same", 0, source="book", metadata={"chunk_index": place}, id=str(place)) for place in range(3)]
    assert [chunk.id for chunk in neighbors_among(named)(named[0], 1)] == ["0", "1"]


def test_a_source_that_was_added_twice_has_each_neighbour_once():
    chunks = [
        Chunk(f"text {place}", 0, metadata={"source": "book", "chunk_index": place}, id=f"{place}{again}")
        for again in "ab"
        for place in range(6)
    ]
    read = neighbors_among(chunks)
    assert texts(read(chunks[3], 2)) == ["text 1", "text 2", "text 3", "text 4", "text 5"]
    assert texts(read(chunks[9], 1)) == ["text 2", "text 3", "text 4"]


def test_neighbors_that_contradict_the_positions_of_a_source_cost_only_its_own_neighbors():
    def part(source, start, rank):
        return hit(f"{source} {start:04}", rank, source=source, start_index=start)

    def read(chunk, number):
        start = chunk.metadata["start_index"]
        at = start - 10 if chunk.source == "a" else start
        return [hit("another", 0, source=chunk.source, start_index=at + 10), part(chunk.source, start, chunk.rank)]

    hits = [part("a", 20, 0), part("b", 20, 1), part("a", 0, 2)]
    with pytest.warns(PositionWarning, match="contradict their positions, so no neighbors are added for their sources"):
        context = build_context(hits, neighbors=1, read_neighbors=read)
    assert texts(context.kept) == ["a 0000", "a 0020", "b 0020", "another"]
