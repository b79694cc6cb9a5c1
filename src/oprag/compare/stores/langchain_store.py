"""A LangChain vector store as a store of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from oprag.compare.stores.store import EmptyStore, Store
from oprag.errors import ExperimentError
from oprag.langchain.search import documents_and_scores, search, search_by_vector, takes_a_vector
from oprag.steps import run_sync

__all__ = ["LangChainStore"]

# Metadata key of the document id, since some stores do not return the id itself.
_KEY = "oprag_id"
# Placeholder query for stores that cannot search by vector; `_PrecomputedVectors` embeds it as the question.
_QUERY = "question"


class LangChainStore(Store):
    """A LangChain vector store, filled and searched with precomputed vectors."""

    def __init__(
        self,
        name: str,
        open_empty: Callable[[Embeddings, int], EmptyStore],
        texts: Sequence[str],
        vectors: NDArray[np.float32],
    ) -> None:
        self._embeddings = _PrecomputedVectors(vectors.shape[1])
        empty = open_empty(self._embeddings, vectors.shape[1])
        self._keywords = empty.search
        super().__init__(name, empty, texts, vectors)

    def _put(self, keys: Sequence[str], texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        documents = [Document(text, metadata={_KEY: key}) for key, text in zip(keys, texts, strict=True)]
        self._embeddings.known = dict(zip(texts, vectors, strict=True))
        self._store.add_documents(documents, ids=list(keys))
        self._embeddings.known = None

    def _search(self, unit: NDArray[np.float32], k: int) -> Iterator[tuple[Any, str, Any]]:
        keywords = {"k": k, **self._keywords}
        if takes_a_vector(self._store, "similarity", keywords):
            found = run_sync(search_by_vector(self._store, unit, "similarity", keywords))
        else:
            self._embeddings.question = unit.tolist()
            found = run_sync(search(self._store, _QUERY, "similarity", keywords))
        documents, scores = documents_and_scores(self._store, found)
        for document, score in zip(documents, scores or [None] * len(documents), strict=True):
            yield document.metadata.get(_KEY, document.id), document.page_content, score


class _PrecomputedVectors(Embeddings):
    """LangChain embeddings that return precomputed vectors."""

    # Some stores read this attribute to name their collections.
    model = "oprag"

    def __init__(self, dimension: int) -> None:
        # A store may embed any text to find out the dimension.
        self.question = [1.0, *([0.0] * (dimension - 1))]
        self.known: Mapping[str, NDArray[np.float32]] | None = None  # set while chunks are added

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """The precomputed vectors of the texts."""
        if self.known is None:
            return [self.question] * len(texts)
        for text in texts:
            if text not in self.known:
                raise ExperimentError(
                    f"the store requests the vector of a text that was not added to it: {text[:80]!r}; stores that "
                    "modify texts are not supported",
                    text,
                )
        return [self.known[text].tolist() for text in texts]

    def embed_query(self, text: str) -> list[float]:  # noqa: ARG002
        """The vector of the current question."""
        return self.question
