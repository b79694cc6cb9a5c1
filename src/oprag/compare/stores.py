"""Vector stores of an experiment: LangChain stores by name or from a factory, searched with precomputed vectors."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from importlib import import_module
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from oprag._internal.masking import describe
from oprag.embedding.cosine import as_vectors
from oprag.errors import ExperimentError, MissingExtraError

__all__ = ["STORE_NAMES", "Store"]

# The class of each store, and the packages that it needs.
_BUILT_IN = {
    "in_memory": ("langchain_core.vectorstores.InMemoryVectorStore", "langchain-core"),
    "chroma": ("langchain_chroma.Chroma", "langchain-chroma"),
    "faiss": ("langchain_community.vectorstores.FAISS", "langchain-community faiss-cpu"),
    "qdrant": ("langchain_qdrant.QdrantVectorStore", "langchain-qdrant"),
    "lancedb": ("langchain_community.vectorstores.LanceDB", "langchain-community lancedb"),
    "pinecone": ("langchain_pinecone.PineconeVectorStore", "langchain-pinecone"),
}
STORE_NAMES = ("index", *_BUILT_IN)
"""The built-in stores; "index" is a `DocumentIndex`, whose search is exact."""

_ROW = "oprag_row"  # metadata key
_BATCH = 1_000  # maximum number of chunks added in one call


class Store:
    """The chunks of an index (one or more texts with their vectors) in a LangChain vector store, by row from 0.

    A factory takes LangChain embeddings, which are this object, and returns an empty store or a context manager of one.
    """

    def __init__(
        self, name: str, texts: Sequence[str], vectors: NDArray[np.float32], factory: Callable[[Any], Any] | None = None
    ) -> None:
        # Surrogates cannot be encoded, and PostgreSQL rejects NUL.
        self._texts = [text.encode(errors="replace").decode().replace("\0", "?") for text in texts]
        self._name, unit = name, as_vectors(vectors, len(texts))
        self._known, self.dimension = dict(zip(self._texts, unit, strict=True)), unit.shape[1]
        self._question = [1.0, *([0.0] * (self.dimension - 1))]
        rows = [{_ROW: row} for row in range(len(texts))]
        with ExitStack() as opened:
            try:
                import_module("langchain_core.embeddings").Embeddings.register(Store)  # as LangChain is optional
                store = factory(self) if factory else self._built_in(rows, opened)
            except ImportError as error:
                if factory:
                    raise
                raise MissingExtraError(f"the store {name!r}", name, f"pip install {_BUILT_IN[name][1]}") from error
            self._store = opened.enter_context(store) if hasattr(type(store), "__exit__") else store
            for start in range(0, len(rows) if factory else 0, _BATCH):
                self._store.add_texts(self._texts[start : start + _BATCH], rows[start : start + _BATCH])
            self.close = opened.pop_all().close

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The known vectors; a store may embed other texts to find out the dimension."""
        return [self._known[text].tolist() if text in self._known else self._question for text in texts]

    def embed_query(self, text: str) -> list[float]:  # noqa: ARG002
        """The vector of the current question."""
        return self._question

    def search(self, vector: NDArray[np.float32], k: int) -> list[tuple[int, float]]:
        """Rows of up to k chunks with the highest cosine similarity, best first, with the scores of the store."""
        self._question = as_vectors(np.asarray(vector)[None], 1, self.dimension)[0].tolist()
        found: dict[int, float] = {}
        # The text is a placeholder: the embeddings return the vector of the question.
        for document, score in self._store.similarity_search_with_score("?", k=min(k, len(self._texts))):
            row = int(document.metadata.get(_ROW, -1))  # Pinecone returns numbers as floats
            if row in found or self._texts[row : row + 1] != [document.page_content]:
                what = f"the store {self._name!r} returned {describe(document.page_content)} twice, or the experiment"
                advice = "a store must be empty when it is opened, and return texts unchanged"
                raise ExperimentError(f"{what} did not add this text; {advice}", document)
            found[row] = float(score)
        return list(found.items())

    def _built_in(self, rows: Sequence[Any], opened: ExitStack) -> Any:
        """A filled store; what must be closed with it is added to `opened`."""
        name, texts = self._name, self._texts
        module, _, attribute = _BUILT_IN[name][0].rpartition(".")
        kind = getattr(import_module(module), attribute)
        if name == "pinecone":
            # A new namespace in an index for this dimension, which must exist; the key is `PINECONE_API_KEY`.
            index, namespace = f"oprag-{self.dimension}", f"oprag-{uuid4().hex}"
            store = kind(index_name=index, embedding=self, namespace=namespace)
            opened.callback(store.delete, delete_all=True)
            store.add_texts(texts, rows)
            # It finds what was added with a delay of seconds.
            for _ in range(120):
                found = store.index.describe_index_stats()["namespaces"].get(namespace, {})
                if found.get("vector_count", 0) >= len(texts):
                    return store
                time.sleep(1)
            raise ExperimentError(f"Pinecone has not found all chunks in {namespace}", namespace)
        options: dict[str, Any] = {"qdrant": {"location": ":memory:"}, "lancedb": {"uri": "memory://"}}.get(name, {})
        if name == "faiss":
            options = {"distance_strategy": "MAX_INNER_PRODUCT"}  # of unit vectors, it is their cosine similarity
        if name == "chroma":
            chroma = import_module("chromadb")
            # In-memory clients of a process share one database.
            folder = opened.enter_context(TemporaryDirectory(prefix="oprag-store-", ignore_cleanup_errors=True))
            client = chroma.PersistentClient(folder, chroma.config.Settings(anonymized_telemetry=False))
            opened.enter_context(closing(client))
            # Search the graph widely enough to find the exact nearest chunks of a book, for k up to `ef_search`.
            graph = {"space": "cosine", "ef_construction": 400, "ef_search": 2_000}
            options = {"client": client, "collection_configuration": {"hnsw": graph}}
        return kind.from_texts(texts, self, rows, **options)
