"""Exact search over one matrix, compared with the NumPy product alone and the frameworks' in-memory stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore, VectorStoreQuery
from numpy.typing import NDArray

from benchmarks.result import Figure, Result, Table, main
from benchmarks.timing import Timing, interleave
from oprag import DocumentIndex, DualEncoder

COUNT, DIMENSION, K = 20_000, 384, 128
IN_A_ROW = 10
AT_MOST, AT_LEAST = 1.5, 50
QUESTION = "?"

PRODUCT, OURS = "NumPy, matrix product only", "`DocumentIndex.search`"
LANGCHAIN, LLAMA_INDEX = "LangChain `InMemoryVectorStore`", "LlamaIndex `SimpleVectorStore`"


class Known(Embeddings):
    """Returns precomputed vectors."""

    def __init__(self, vectors: list[list[float]]) -> None:
        self._vectors = vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:  # noqa: ARG002
        return self._vectors

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError(text)


def run() -> Result:
    """Time a search for one question with a known vector."""
    chance = np.random.default_rng(0)
    vectors, (question,) = _unit(chance, COUNT), _unit(chance, 1)
    texts = [f"chunk {number}" for number in range(COUNT)]
    encoder = DualEncoder("known", question=lambda asked: [question] * len(asked))
    index = DocumentIndex(texts, [{"source": "book"} for _ in texts], vectors, encoder)
    matrix = index.vectors
    in_langchain, in_llama_index = _stores(texts, vectors.tolist())
    numbers = question.tolist()
    query = VectorStoreQuery(query_embedding=numbers, similarity_top_k=K)
    found = [chunk.text for chunk in index.search(QUESTION, K)]
    in_theirs = [document.id for document in in_langchain.similarity_search_by_vector(numbers, K)]
    if not found == in_theirs == in_llama_index.query(query).ids:
        raise RuntimeError("the searches returned different chunks")

    beside_product = interleave(
        {PRODUCT: lambda: matrix @ question, OURS: lambda: index.search(QUESTION, K)}, rounds=20, in_a_row=IN_A_ROW
    )
    beside_stores = interleave(
        {
            OURS: lambda: index.search(QUESTION, K),
            LANGCHAIN: lambda: in_langchain.similarity_search_by_vector(numbers, K),
            LLAMA_INDEX: lambda: in_llama_index.query(query),
        },
        rounds=4,
        in_a_row=IN_A_ROW,
    )
    against = beside_product[OURS].median / beside_product[PRODUCT].median
    ours = beside_stores[OURS]
    return Result(
        "Search",
        f"The {K} nearest of {COUNT:,} random unit vectors of {DIMENSION} float32 numbers, with the vector of the "
        "question. All searches return the same chunks in the same order.",
        figures=[
            Figure(
                f"time of {OURS}, relative to the matrix product",
                f"at most {AT_MOST} times",
                f"{against:.2f} times",
                against <= AT_MOST,
            ),
            *(_faster(name, beside_stores[name].median / ours.median) for name in (LANGCHAIN, LLAMA_INDEX)),
        ],
        tables=[
            _table("Milliseconds, timed in turn with the frameworks' stores:", beside_stores),
            _table("Milliseconds, timed in turn with the matrix product:", beside_product),
        ],
    )


def _table(caption: str, timings: Mapping[str, Timing]) -> Table:
    return Table(caption, ["search", "time"], [[name, str(timing)] for name, timing in timings.items()])


def _faster(name: str, times: float) -> Figure:
    return Figure(
        f"time of {name}, relative to {OURS}", f"at least {AT_LEAST} times", f"{times:.0f} times", times >= AT_LEAST
    )


def _stores(texts: Sequence[str], rows: list[list[float]]) -> tuple[InMemoryVectorStore, SimpleVectorStore]:
    in_langchain = InMemoryVectorStore(Known(rows))
    in_langchain.add_documents([Document(text, id=text) for text in texts])
    in_llama_index = SimpleVectorStore()
    in_llama_index.add([TextNode(text=text, id_=text, embedding=row) for text, row in zip(texts, rows, strict=True)])
    return in_langchain, in_llama_index


def _unit(chance: np.random.Generator, count: int) -> NDArray[np.float32]:
    vectors = chance.standard_normal((count, DIMENSION), dtype=np.float32)
    unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


if __name__ == "__main__":
    main(run)
