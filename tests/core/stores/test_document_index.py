from oprag import DocumentIndex
from oprag.stores.adapter import adapter_of


def test_the_chunks_of_an_index_of_our_own():
    index = DocumentIndex.from_texts({"a.txt": "one two three", "b.txt": "four five"}, chunk_size=2)
    adapter = adapter_of(index)
    assert adapter is not None
    chunks = list(adapter.chunks() or ())
    assert [(chunk.key, chunk.text, chunk.metadata["source"]) for chunk in chunks] == [
        ("0", "one two ", "a.txt"),
        ("1", "three", "a.txt"),
        ("2", "four five", "b.txt"),
    ]
    assert [chunk.key for chunk in adapter.chunks("source", {"b.txt"}) or ()] == ["2"]
    assert not adapter.writable
