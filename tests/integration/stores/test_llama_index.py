"""The same nodes with the same vectors in each of LlamaIndex's stores give the same context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

from oprag.llama_index import OrderPreservingRetriever
from tests.integration.stores.checks import ask, check, kinds_of_values, numbers, tenants
from tests.integration.stores.conftest import Places
from tests.integration.stores.corpus import OPTIONS, TENANTS, Corpus, identify
from tests.integration.stores.known import KnownEmbeddings, NodeEmbeddings, node_of
from tests.integration.stores.llama_index_stores import KINDS, Kind

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect in the local Qdrant:UserWarning"),
]

WAYS = ("sync", "async")


def each(kinds: list[Kind]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("case", "way"),
        [pytest.param(kind, way, id=f"{kind}-{way}") for kind in kinds for way in WAYS],
        indirect=["case"],
    )


@dataclass(frozen=True)
class Case:
    """An index over a store that holds all nodes of two tenants, or of one where it cannot filter."""

    kind: Kind
    index: VectorStoreIndex
    embeddings: KnownEmbeddings

    @property
    def tenants(self) -> tuple[str, ...]:
        return TENANTS if self.kind.filters else TENANTS[:1]

    def retriever(self, tenant: str, **options: Any) -> OrderPreservingRetriever:
        filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value=tenant)]) if self.kind.filters else None
        inner = self.index.as_retriever(filters=filters, **{"similarity_top_k": OPTIONS["max_candidates"]} | options)
        return OrderPreservingRetriever(retriever=inner, **OPTIONS)


@pytest.fixture(scope="session")
def cases(corpus: Corpus, places: Places) -> Iterator[Callable[[Kind], Case]]:
    """A case of each kind, made when it is asked for."""
    with ExitStack() as stack:

        @cache
        def make(kind: Kind) -> Case:
            embeddings = KnownEmbeddings(corpus)
            nodes = [
                node_of(text, identify(kind.name, tenant, number), corpus.metadata(number, tenant))
                for number, text in enumerate(corpus.texts)
                for tenant in (TENANTS if kind.filters else TENANTS[:1])
            ]
            place = stack.enter_context(places(f"li_{kind}"))
            return Case(kind, kind.make(nodes, NodeEmbeddings(embeddings), place), embeddings)

        yield make


@pytest.fixture
def case(request: pytest.FixtureRequest, cases: Callable[[Kind], Case]) -> Case:
    case = cases(request.param)
    case.embeddings.forget()
    return case


@each(KINDS)
def test_what_is_kept_and_dropped_is_what_numpy_says(case: Case, way: str, corpus: Corpus):
    for question in corpus.questions:
        for tenant in case.tenants:
            check(ask(way, case.retriever(tenant), question), corpus, question, tenant)


@each(KINDS)
def test_a_question_is_embedded_once_and_a_node_never(case: Case, way: str, corpus: Corpus):
    retriever, (question, *_) = case.retriever("red"), corpus.questions
    first = ask(way, retriever, question)
    assert case.embeddings.embedded == (1, 0)
    case.embeddings.forget()
    assert numbers(ask(way, retriever, question)) == numbers(first)
    assert case.embeddings.embedded == (0, 0)


@each(KINDS)
def test_ids_and_metadata_after_the_round_trip(case: Case, way: str, corpus: Corpus):
    question, *_ = corpus.questions
    tenant = case.tenants[-1]
    for chunk in ask(way, case.retriever(tenant), question).kept:
        number = chunk.metadata["chunk_index"]
        wanted = corpus.metadata(number, tenant)
        assert chunk.id == identify(case.kind.name, tenant, number)
        # All of these stores keep the node as a text of its own, where nothing is lost.
        assert chunk.metadata == wanted
        assert kinds_of_values(chunk.metadata) == kinds_of_values(wanted)


@each([kind for kind in KINDS if kind.mmr])
def test_mmr(case: Case, way: str, corpus: Corpus):
    question, *_ = corpus.questions
    retriever = case.retriever("red", similarity_top_k=40, vector_store_query_mode="mmr")
    context = ask(way, retriever, question)
    assert tenants(context) == {"red"}
    assert numbers(context) == sorted(numbers(context))
    assert len(context.kept) + len(context.dropped) == 40
    for chunk in context.kept:
        expected = corpus.cosine(question, chunk.metadata["chunk_index"])
        assert chunk.similarity == pytest.approx(expected, abs=1e-3)
    assert case.embeddings.embedded == (1, 0)
