"""oprag's `DocumentIndex`."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from oprag.stores.adapter import StoreAdapter, StoredChunk, StoredVector, chunks_with

__all__ = ["OwnIndex"]


class OwnIndex(StoreAdapter):
    """oprag's `DocumentIndex`; the row numbers of its chunks are their keys."""

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """Return the vectors of chunks; empty for an index without vectors."""
        if self.store.embedder is None:
            return {}
        chunks, vectors = self.store.chunks, self.store.vectors
        rows = (int(key) for key in keys if key.isdecimal() and int(key) < len(chunks))
        return {str(row): StoredVector(vectors[row], chunks[row].text) for row in rows}

    def chunks(self, field: str = "", sources: Collection[str] = ()) -> Iterable[StoredChunk]:
        """List the chunks by row number."""
        rows = (StoredChunk(chunk.id, chunk.text, chunk.metadata) for chunk in self.store.chunks)
        return chunks_with(rows, field, sources)
