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
from tests.adapters.langchain.conftest import giving, parts, store_of
from tests.adapters.langchain.conftest import numbers_of as documents_numbers
from tests.adapters.llama_index.conftest import HashedWords, ListRetriever
from tests.adapters.llama_index.conftest import numbers as nodes_numbers
from tests.adapters.llama_index.engine.conftest import Model as LlamaIndexModel
from tests.adapters.llama_index.engine.conftest import parts as nodes
from tests.adapters.scripted import QUESTION


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
    """A component: what it is made of, how it is used, and which options it then assembled with."""

    name: str
    cls: Any
    parts: Callable[[], dict[str, Any]]
    use: Callable[[Any], object]
    options_of: Callable[[Any], ContextOptions] | None = None
    defaults: dict[str, Any] = field(default_factory=lambda: {"stitch": False})
    """Those that differ from the defaults of `ContextOptions`, as the documentation says."""
    numbers: Callable[[Any], list[int]] = documents_numbers
    """The numbers of the chunks that came back from its use."""
    answers: bool = False
    assignable: bool = True
    """A chain has its options for good."""

    def make(self, **options: Any) -> Any:
        return self.cls(**self.parts() | options)

    def __str__(self) -> str:
        return self.name


SURFACES = [
    Surface(
        "langchain-compressor",
        langchain.OrderPreservingCompressor,
        lambda: LANGCHAIN,
        lambda made: made.compress_documents(documents(), QUESTION),
    ),
    Surface(
        "langchain-retriever",
        langchain.OrderPreservingRetriever,
        lambda: {"retriever": giving(documents()), **LANGCHAIN},
        lambda made: made.invoke(QUESTION),
        lambda made: made.get_context(QUESTION).options,
    ),
    Surface(
        "langchain-retriever-of-a-store",
        langchain.OrderPreservingRetriever,
        lambda: {"vectorstore": store_of(documents()), "read_neighbors": nothing_around},
        lambda made: made.invoke(QUESTION),
        lambda made: made.get_context(QUESTION).options,
        {"stitch": False, "k": 128, "token_budget": 16_384},
    ),
    Surface(
        "langchain-chain",
        langchain.OrderPreservingChain,
        lambda: {"llm": LangChainModel(), "retriever": giving(documents()), **LANGCHAIN},
        lambda made: made.invoke({"input": QUESTION}),
        lambda made: made.answer(QUESTION).contexts[0].options,
        numbers=lambda output: documents_numbers(output["context"]),
        answers=True,
        assignable=False,
    ),
    Surface(
        "llama-index-postprocessor",
        llama_index.OrderPreservingPostprocessor,
        lambda: LLAMA_INDEX,
        lambda made: made.postprocess_nodes(nodes(3), query_str=QUESTION),
        lambda made: made.get_context(nodes(3), QUESTION).options,
        numbers=nodes_numbers,
    ),
    Surface(
        "llama-index-retriever",
        llama_index.OrderPreservingRetriever,
        lambda: {"retriever": ListRetriever(nodes(3)), **LLAMA_INDEX},
        lambda made: made.retrieve(QUESTION),
        lambda made: made.get_context(QUESTION).options,
        numbers=nodes_numbers,
    ),
    Surface(
        "llama-index-engine",
        llama_index.OrderPreservingQueryEngine,
        lambda: {"llm": LlamaIndexModel(), "retriever": ListRetriever(nodes(3)), **LLAMA_INDEX},
        lambda made: made.query(QUESTION),
        lambda made: made.answer(QUESTION).contexts[0].options,
        numbers=lambda response: nodes_numbers(response.source_nodes),
        answers=True,
    ),
]

each_surface = pytest.mark.parametrize("surface", SURFACES, ids=str)
each_assignable_surface = pytest.mark.parametrize("surface", [one for one in SURFACES if one.assignable], ids=str)
each_that_answers = pytest.mark.parametrize("surface", [one for one in SURFACES if one.answers], ids=str)
each_that_retrieves = pytest.mark.parametrize("surface", [one for one in SURFACES if not one.answers], ids=str)
