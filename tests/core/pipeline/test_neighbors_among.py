from oprag import Chunk
from oprag.pipeline.neighbors import neighbors_among
from tests.helpers import hit, texts


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


def test_other_keys_can_be_named():
    chunks = [Chunk(f"verse {place}", 0, metadata={"poem": "a", "verse": place}) for place in range(4)]
    read = neighbors_among(chunks, source_key="poem", position_key="verse")
    assert texts(read(chunks[2], 1)) == ["verse 1", "verse 2", "verse 3"]


def test_no_chunks_have_no_neighbours():
    assert list(neighbors_among([])(hit("text", 0, chunk_index=0), 3)) == []


def test_a_source_that_was_added_twice_has_each_neighbour_once():
    chunks = [
        Chunk(f"text {place}", 0, metadata={"source": "book", "chunk_index": place}, id=f"{place}{again}")
        for again in "ab"
        for place in range(6)
    ]
    read = neighbors_among(chunks)
    assert texts(read(chunks[3], 2)) == ["text 1", "text 2", "text 3", "text 4", "text 5"]
    assert texts(read(chunks[9], 1)) == ["text 2", "text 3", "text 4"]
