"""What users of LangChain's own classes write by habit: every constructor says what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from pydantic import ValidationError

from oprag import DocumentIndex, OptionError
from oprag.langchain import (
    DocumentIndexRetriever,
    OrderPreservingChain,
    OrderPreservingCompressor,
    OrderPreservingRetriever,
)
from tests.adapters.langchain.conftest import parts, store_of
from tests.helpers import WordEmbedder, word_offsets

STORE = store_of(parts(3))
RETRIEVER = STORE.as_retriever()
LLM = FakeListChatModel(responses=["An answer."])
EMBEDDINGS = DeterministicFakeEmbedding(size=16)
INDEX = DocumentIndex.from_texts({"a.txt": "one two three"}, WordEmbedder(), word_offsets, size=2)


def retriever(**options: Any) -> OrderPreservingRetriever:
    return OrderPreservingRetriever(vectorstore=STORE, **options)


def compressor(**options: Any) -> OrderPreservingCompressor:
    return OrderPreservingCompressor(**options)


def chain(**options: Any) -> OrderPreservingChain:
    return OrderPreservingChain(**{"llm": LLM, "retriever": STORE, **options})


def index_retriever(**options: Any) -> DocumentIndexRetriever:
    return DocumentIndexRetriever(**{"index": INDEX, **options})


MAKERS = [retriever, compressor, chain, index_retriever]
SURFACES = MAKERS[:3]


@pytest.mark.parametrize("make", SURFACES)
@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [("token_budgets", "token_budget"), ("oder", "order"), ("similarity_treshold", "similarity_threshold")],
)
def test_constructors_guess_what_was_meant_as_functions_do(make: Callable[..., Any], misspelt: str, meant: str):
    with pytest.raises(ValidationError, match=f"unknown option '{misspelt}'; did you mean '{meant}'"):
        make(**{misspelt: 5})


def test_the_index_retriever_guesses_too():
    with pytest.raises(ValidationError, match="unknown option 'serch'; did you mean 'search'"):
        index_retriever(serch="bm25")


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_like_no_option_is_told_the_options(make: Callable[..., Any]):
    with pytest.raises(ValidationError, match=r"unknown option 'zzz'; expected one of .*k, "):
        make(zzz=1)


INSTEAD = [
    (retriever, "document_separator", "use separator="),
    (retriever, "document_prompt", "use header="),
    (retriever, "return_source_documents", "a retriever always returns the documents"),
    (retriever, "chain_type", "OrderPreservingChain"),
    (retriever, "llm", "OrderPreservingChain"),
    (retriever, "base_retriever", "use retriever="),
    (retriever, "base_compressor", "retriever=ContextualCompressionRetriever(base_compressor=..., base_retriever=...)"),
    (retriever, "embedding", "use embeddings="),
    (retriever, "filter", 'search_kwargs={"filter": ...}'),
    (retriever, "lambda_mult", 'search_kwargs={"lambda_mult": ...}'),
    (retriever, "top_k", "use k="),
    (retriever, "max_tokens_limit", "use token_budget="),
    (retriever, "score_threshold", 'search_kwargs={"score_threshold": ...}'),
    (compressor, "top_n", "use k="),
    (compressor, "base_retriever", "OrderPreservingRetriever(retriever=...)"),
    (compressor, "vectorstore", "OrderPreservingRetriever(retriever=...) or (vectorstore=...)"),
    (compressor, "score_threshold", "use similarity_threshold=, a cosine similarity"),
    (compressor, "base_compressor", "DocumentCompressorPipeline(transformers=[base_compressor, ...])"),
    (chain, "document_separator", "use separator="),
    (chain, "document_variable_name", "{context}"),
    (chain, "return_source_documents", 'documents_key="source_documents"'),
    (chain, "search_kwargs", "retriever=OrderPreservingRetriever(vectorstore=..., search_type=..., search_kwargs=...)"),
    (chain, "chain_type", "use method=, or OrderPreservingChain.from_chain_type(...)"),
    (chain, "chain_type_kwargs", "use prompts=, or OrderPreservingChain.from_chain_type(...)"),
    (chain, "combine_docs_chain", 'use llm= for its model, prompts={"answer": ...} for its prompt'),
    (chain, "prompt", 'use prompts={"answer": prompt}'),
    (chain, "combine_prompt", 'use prompts={"reduce": combine_prompt}'),
    (chain, "condense_question_prompt", 'use prompts={"condense": condense_question_prompt}'),
    (chain, "vectorstore", "use retriever="),
    (chain, "model", "use llm="),
    (chain, "memory", '"chat_history"'),
    (chain, "callbacks", "use chain.with_config(...)"),
    (chain, "token_max", "use collapse_tokens="),
    (index_retriever, "top_k", "use k="),
    (index_retriever, "search_type", 'use search="dense", "bm25" or "hybrid"'),
]


@pytest.mark.parametrize(("make", "name", "instead"), INSTEAD, ids=lambda one: getattr(one, "__name__", None))
def test_options_of_langchain_are_told_what_to_write_here(make: Callable[..., Any], name: str, instead: str):
    with pytest.raises(ValidationError, match=f"unknown option '{name}'; .*{re.escape(instead)}"):
        make(**{name: "x"})


def test_from_chain_type_tells_too():
    with pytest.raises(ValidationError, match="unknown option 'combine_prompt'; use prompts="):
        OrderPreservingChain.from_chain_type(LLM, retriever=STORE, combine_prompt="x")


MISPLACED = [
    (
        OrderPreservingRetriever,
        {"retriever": STORE},
        "cannot use InMemoryVectorStore as retriever; pass vectorstore=store",
    ),
    (
        OrderPreservingRetriever,
        {"vectorstore": RETRIEVER},
        "cannot use VectorStoreRetriever as vectorstore; pass retriever=retriever",
    ),
    (
        OrderPreservingRetriever,
        {"vectorstore": INDEX},
        "cannot use DocumentIndex as vectorstore; pass retriever=DocumentIndexRetriever(index=index)",
    ),
    (
        OrderPreservingRetriever,
        {"retriever": INDEX},
        "cannot use DocumentIndex as retriever; pass retriever=DocumentIndexRetriever(index=index)",
    ),
    (
        OrderPreservingChain,
        {"llm": LLM, "retriever": INDEX},
        "cannot use DocumentIndex as retriever; pass retriever=DocumentIndexRetriever(index=index)",
    ),
    (
        OrderPreservingChain,
        {"llm": RETRIEVER, "retriever": LLM},
        "cannot use VectorStoreRetriever as llm; pass retriever=retriever",
    ),
    (OrderPreservingChain, {"llm": LLM, "retriever": LLM}, "cannot use FakeListChatModel as retriever; pass llm=llm"),
    (
        OrderPreservingCompressor,
        {"embeddings": INDEX},
        "cannot use DocumentIndex as embeddings; pass read_neighbors=index",
    ),
    (
        OrderPreservingChain,
        {"llm": "gpt-x", "retriever": STORE},
        'llm must be a LangChain model, got str; pass init_chat_model("...")',
    ),
]


@pytest.mark.parametrize(("cls", "options", "message"), MISPLACED)
def test_an_object_in_the_place_of_another_is_told_its_own(cls: Any, options: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=re.escape(message)):
        cls(**options)


def test_objects_in_their_own_place_are_taken():
    assert OrderPreservingRetriever(retriever=RETRIEVER, embeddings=EMBEDDINGS).retriever is RETRIEVER
    assert OrderPreservingRetriever(vectorstore=STORE, read_neighbors=INDEX).read_neighbors is INDEX
    assert OrderPreservingChain(llm=LLM, retriever=RETRIEVER, embeddings=EMBEDDINGS).retriever is RETRIEVER
    assert OrderPreservingChain(llm=LLM, retriever=STORE).retriever is STORE
    assert DocumentIndexRetriever(index=INDEX, search="bm25").index is INDEX
    # Any runnable can be a model, or retrieve.
    anything = RunnableLambda(lambda given: given)
    assert OrderPreservingChain(llm=anything, retriever=anything).llm is anything


POSITIONAL = [
    (OrderPreservingRetriever, (RETRIEVER,), {}, "OrderPreservingRetriever(retriever=retriever)"),
    (OrderPreservingRetriever, (STORE,), {"k": 3}, "OrderPreservingRetriever(vectorstore=store, k=...)"),
    (OrderPreservingChain, (LLM, RETRIEVER), {}, "OrderPreservingChain(llm=llm, retriever=retriever)"),
    (OrderPreservingChain, (LLM, STORE), {}, "OrderPreservingChain(llm=llm, retriever=store)"),
    (OrderPreservingChain, (RETRIEVER, LLM), {}, "OrderPreservingChain(retriever=retriever, llm=llm)"),
    (
        OrderPreservingChain,
        (RunnableLambda(str), RETRIEVER),
        {},
        "OrderPreservingChain(llm=..., retriever=retriever)",
    ),
    (OrderPreservingChain, (LLM,), {"retriever": STORE}, "OrderPreservingChain(llm=llm, retriever=...)"),
    (OrderPreservingCompressor, (EMBEDDINGS,), {}, "OrderPreservingCompressor(embeddings=embeddings)"),
    (DocumentIndexRetriever, (INDEX,), {}, "DocumentIndexRetriever(index=index)"),
]


@pytest.mark.parametrize(("cls", "args", "options", "instead"), POSITIONAL)
def test_positional_arguments_are_told_their_names(cls: Any, args: Any, options: dict[str, Any], instead: str):
    name = cls.__name__
    with pytest.raises(OptionError, match=re.escape(f"{name} takes keyword arguments only; write {instead}")):
        cls(*args, **options)


def test_positional_arguments_that_could_be_anything_are_told_that_they_need_a_name():
    untyped: Any = OrderPreservingCompressor
    with pytest.raises(OptionError, match=r"OrderPreservingCompressor takes keyword arguments only, got int, list$"):
        untyped(5, [])
