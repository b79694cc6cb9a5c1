"""An empty store in Pinecone, for experiments: `stores={"pinecone": pinecone_store.make}`.

There must be an index for each dimension of an embedder, named by it: oprag-3072 for vectors of 3,072 numbers, with the
metric cosine. Each store is a namespace of its own in it, and goes when the run is over.
What it needs: pip install langchain-pinecone, and PINECONE_API_KEY.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

__all__ = ["make"]

_SECONDS = 120.0
_PAUSE = 1.0


@contextmanager
def make(embeddings: Any, **place: Any) -> Iterator[Any]:
    """An empty LangChain store, cleared after use.

    Args:
        embeddings: The embeddings of the experiment.
        place: Location of the index instead of its name: arguments of `PineconeVectorStore`.

    Raises:
        TimeoutError: Added vectors cannot be found after two minutes.
    """
    from langchain_pinecone import PineconeVectorStore

    class Settled(PineconeVectorStore):  # type: ignore[misc, unused-ignore]
        """Waits until added vectors can be found, which Pinecone does with a delay."""

        put_in = 0

        def add_documents(self, documents: Any, **options: Any) -> Any:
            ids = super().add_documents(documents, **options)
            self.put_in += len(ids)
            _wait(self.index, namespace, self.put_in)
            return ids

    namespace = f"oprag-{uuid4().hex}"
    where = place or {"index_name": f"oprag-{len(embeddings.embed_query('dimension'))}"}
    store = Settled(embedding=embeddings, namespace=namespace, **where)
    try:
        yield store
    finally:
        if store.put_in:
            store.delete(delete_all=True)


def _wait(index: Any, namespace: str, count: int) -> None:
    latest = time.monotonic() + _SECONDS
    while True:
        found = index.describe_index_stats()["namespaces"].get(namespace, {"vector_count": 0})["vector_count"]
        if found >= count:
            return
        if time.monotonic() > latest:
            raise TimeoutError(f"Pinecone has {found} of {count} vectors in {namespace} after {_SECONDS:.0f} s")
        time.sleep(_PAUSE)
