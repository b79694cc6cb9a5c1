"""Our own `DocumentIndex`."""

from collections.abc import Mapping, Sequence

from oprag.stores.adapter import StoreAdapter, StoredVector

__all__ = ["OwnIndex"]


class OwnIndex(StoreAdapter):
    """A `DocumentIndex`, whose chunks are numbered."""

    def vectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """The vectors of chunks; none where the index has none."""
        if self.store.embedder is None:
            return {}
        chunks, vectors = self.store.chunks, self.store.vectors
        rows = (int(key) for key in keys if key.isdecimal() and int(key) < len(chunks))
        return {str(row): StoredVector(vectors[row], chunks[row].text) for row in rows}

    async def avectors(self, keys: Sequence[str]) -> Mapping[str, StoredVector]:
        """As `vectors`: reading memory is not worth a thread."""
        return self.vectors(keys)
