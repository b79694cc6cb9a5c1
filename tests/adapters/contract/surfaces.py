"""The components of both frameworks that have the options of `ContextOptions`, each over the same parts of a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding

from oprag import ContextOptions, langchain, llama_index
from tests.adapters.langchain.chain.conftest import Model as LangChainModel
from tests.adapters.langchain.conftest import QUESTION, giving, parts, store_of
from tests.adapters.langchain.conftest import numbers_of as documents_numbers
from tests.adapters.llama_index.conftest import HashedWords, ListRetriever
from tests.adapters.llama_index.conftest import numbers as nodes_numbers
from tests.adapters.llama_index.engine.conftest import Model as LlamaIndexModel
from tests.adapters.llama_index.engine.conftest import parts as nodes


def documents() -> list[Document]:
    """Three parts of one source, the last one ranked best, as `nodes` gives them."""
    return parts(3)[::-1]


def nothing_around(document: Any, number: int) -> list[Any]:
    return []


# What thresholds and neighbors need.
LANGCHAIN: dict[str, Any] = {"embeddings": DeterministicFakeEmbedding(size=16), "read_neighbors": nothing_around}
LLAMA_INDEX: dict[str, Any] = {"embed_model": HashedWords(), "read_neighbors": nothing_around}


@dataclass(frozen=True)
class Surface:
    """A component: how it is made with options, how it is used, and which options it then assembled with."""

    name: str
    make: Callable[..., Any]
    use: Callable[[Any], object]
    options_of: Callable[[Any], ContextOptions] | None = None
    defaults: dict[str, Any] = field(default_factory=lambda: {"stitch": False})
    """Those that differ from the defaults of `ContextOptions`, as the documentation says."""
    numbers: Callable[[Any], list[int]] = documents_numbers
    """The numbers of the chunks that came back from its use."""
    assignable: bool = True
    """A chain has its options for good."""

    def __str__(self) -> str:
        return self.name


SURFACES = [
    Surface(
        "langchain-compressor",
        lambda **options: langchain.OrderPreservingCompressor(**LANGCHAIN | options),
        lambda made: made.compress_documents(documents(), QUESTION),
    ),
    Surface(
        "langchain-retriever",
        lambda **options: langchain.OrderPreservingRetriever(retriever=giving(documents()), **LANGCHAIN | options),
        lambda made: made.invoke(QUESTION),
        lambda made: made.get_context(QUESTION).options,
    ),
    Surface(
        "langchain-retriever-of-a-store",
        lambda **options: langchain.OrderPreservingRetriever(
            vectorstore=store_of(documents()), read_neighbors=nothing_around, **options
        ),
        lambda made: made.invoke(QUESTION),
        lambda made: made.get_context(QUESTION).options,
        {"stitch": False, "k": 128, "token_budget": 16_384},
    ),
    Surface(
        "langchain-chain",
        lambda **options: langchain.OrderPreservingChain(
            llm=LangChainModel(), retriever=giving(documents()), **LANGCHAIN | options
        ),
        lambda made: made.invoke({"input": QUESTION}),
        lambda made: made.answer(QUESTION).contexts[0].options,
        numbers=lambda output: documents_numbers(output["context"]),
        assignable=False,
    ),
    Surface(
        "llama-index-postprocessor",
        lambda **options: llama_index.OrderPreservingPostprocessor(**LLAMA_INDEX | options),
        lambda made: made.postprocess_nodes(nodes(3), query_str=QUESTION),
        lambda made: made.get_context(nodes(3), QUESTION).options,
        numbers=nodes_numbers,
    ),
    Surface(
        "llama-index-retriever",
        lambda **options: llama_index.OrderPreservingRetriever(
            retriever=ListRetriever(nodes(3)), **LLAMA_INDEX | options
        ),
        lambda made: made.retrieve(QUESTION),
        lambda made: made.get_context(QUESTION).options,
        numbers=nodes_numbers,
    ),
    Surface(
        "llama-index-engine",
        lambda **options: llama_index.OrderPreservingQueryEngine(
            llm=LlamaIndexModel(), retriever=ListRetriever(nodes(3)), **LLAMA_INDEX | options
        ),
        lambda made: made.query(QUESTION),
        lambda made: made.answer(QUESTION).contexts[0].options,
        numbers=lambda response: nodes_numbers(response.source_nodes),
    ),
]

each_surface = pytest.mark.parametrize("surface", SURFACES, ids=str)
each_assignable_surface = pytest.mark.parametrize("surface", [one for one in SURFACES if one.assignable], ids=str)
