"""What users of LlamaIndex's own classes write by habit: every constructor says what to write instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.vector_stores import SimpleVectorStore
from pydantic import ValidationError

from oprag import OptionError
from oprag.llama_index import (
    OrderPreservingPostprocessor,
    OrderPreservingQueryEngine,
    OrderPreservingRetriever,
    StampPositions,
)
from tests.adapters.llama_index.conftest import HashedWords, ListRetriever, numbered

LLM = MockLLM()
EMBED_MODEL = HashedWords()
INDEX = VectorStoreIndex([scored.node for scored in numbered([1, 0])], embed_model=EMBED_MODEL)
RETRIEVER = ListRetriever(numbered([1, 0]))
STORE = SimpleVectorStore()


def postprocessor(**options: Any) -> OrderPreservingPostprocessor:
    return OrderPreservingPostprocessor(**options)


def retriever(**options: Any) -> OrderPreservingRetriever:
    return OrderPreservingRetriever(**{"retriever": RETRIEVER, **options})


def engine(**options: Any) -> OrderPreservingQueryEngine:
    return OrderPreservingQueryEngine(**{"llm": LLM, "retriever": RETRIEVER, **options})


MAKERS = [postprocessor, retriever, engine]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [("token_budgets", "token_budget"), ("oder", "order"), ("similarity_treshold", "similarity_threshold")],
)
def test_constructors_guess_what_was_meant_as_functions_do(make: Callable[..., Any], misspelt: str, meant: str):
    with pytest.raises(ValidationError, match=f"unknown option '{misspelt}'; did you mean '{meant}'"):
        make(**{misspelt: 5})


def test_stamping_guesses_too():
    with pytest.raises(ValidationError, match="unknown option 'sources'; did you mean 'source'"):
        StampPositions(sources="book")  # type: ignore[call-arg]


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_like_no_option_is_told_the_options(make: Callable[..., Any]):
    with pytest.raises(ValidationError, match=r"unknown option 'zzz'; expected one of .*k, "):
        make(zzz=1)


INSTEAD = [
    (engine, "output_cls", "use llm=llm.as_structured_llm(output_cls)"),
    (engine, "text_qa_template", 'use prompts={"answer": text_qa_template}'),
    (engine, "refine_template", 'use prompts={"refine": refine_template}'),
    (engine, "summary_template", 'use prompts={"reduce": summary_template}'),
    (engine, "response_synthesizer", "use method="),
    (engine, "response_mode", '"map_reduce" for tree_summarize'),
    (engine, "similarity_top_k", "use retriever=index.as_retriever(similarity_top_k=...)"),
    (engine, "filters", "use retriever=index.as_retriever(filters=...)"),
    (engine, "vector_store", "use retriever=VectorStoreIndex.from_vector_store(vector_store).as_retriever()"),
    (engine, "embeddings", "use embed_model="),
    (engine, "use_async", "aquery()"),
    (engine, "model", "use llm="),
    (retriever, "similarity_top_k", "use retriever=index.as_retriever(similarity_top_k=...)"),
    (retriever, "node_postprocessors", "OrderPreservingQueryEngine"),
    (retriever, "llm", "OrderPreservingQueryEngine"),
    (retriever, "text_qa_template", "OrderPreservingQueryEngine"),
    (retriever, "similarity_cutoff", "use similarity_threshold=, a cosine similarity"),
    (postprocessor, "top_n", "use k="),
    (postprocessor, "similarity_top_k", "use k="),
    (postprocessor, "similarity_cutoff", "use similarity_threshold="),
    (postprocessor, "docstore", "use read_neighbors=docstore"),
    (postprocessor, "num_nodes", "use neighbors="),
    (postprocessor, "retriever", "OrderPreservingRetriever(retriever=...)"),
    (postprocessor, "embeddings", "use embed_model="),
]


@pytest.mark.parametrize(("make", "name", "instead"), INSTEAD, ids=lambda one: getattr(one, "__name__", None))
def test_options_of_llama_index_are_told_what_to_write_here(make: Callable[..., Any], name: str, instead: str):
    with pytest.raises(ValidationError, match=f"unknown option '{name}'; .*{re.escape(instead)}"):
        make(**{name: "x"})


MISPLACED = [
    (
        OrderPreservingRetriever,
        {"retriever": INDEX},
        "cannot use VectorStoreIndex as retriever; pass retriever=index.as_retriever()",
    ),
    (
        OrderPreservingQueryEngine,
        {"llm": LLM, "retriever": INDEX},
        "cannot use VectorStoreIndex as retriever; pass retriever=index.as_retriever()",
    ),
    (
        OrderPreservingQueryEngine,
        {"llm": LLM, "index": INDEX},
        "retriever is missing; pass retriever=index.as_retriever()",
    ),
    (OrderPreservingRetriever, {"index": INDEX}, "retriever is missing; pass retriever=index.as_retriever()"),
    (
        OrderPreservingRetriever,
        {"retriever": STORE},
        "pass retriever=VectorStoreIndex.from_vector_store(store).as_retriever()",
    ),
    (
        OrderPreservingQueryEngine,
        {"llm": LLM, "retriever": RetrieverQueryEngine.from_args(RETRIEVER, llm=LLM)},
        "cannot use RetrieverQueryEngine as retriever; pass retriever=query_engine.retriever",
    ),
    (
        OrderPreservingQueryEngine,
        {"llm": RETRIEVER, "retriever": LLM},
        "cannot use ListRetriever as llm; pass retriever=retriever",
    ),
    (
        OrderPreservingQueryEngine,
        {"llm": "gpt-x", "retriever": RETRIEVER},
        'llm must be a LlamaIndex LLM, got str; pass a model, such as OpenAI(model="...")',
    ),
]


@pytest.mark.parametrize(("cls", "options", "message"), MISPLACED)
def test_an_object_in_the_place_of_another_is_told_its_own(cls: Any, options: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=re.escape(message)):
        cls(**options)


def test_objects_in_their_own_place_are_taken():
    assert OrderPreservingPostprocessor(index=INDEX, embed_model=EMBED_MODEL).index is INDEX
    assert OrderPreservingRetriever(retriever=RETRIEVER, index=INDEX).index is INDEX
    made = engine(index=INDEX, embed_model=EMBED_MODEL, node_postprocessors=[SimilarityPostprocessor()])
    assert made.retriever is RETRIEVER


POSITIONAL = [
    (OrderPreservingQueryEngine, (RETRIEVER,), {}, "OrderPreservingQueryEngine(retriever=retriever)"),
    (OrderPreservingQueryEngine, (RETRIEVER, LLM), {}, "OrderPreservingQueryEngine(retriever=retriever, llm=llm)"),
    (
        OrderPreservingQueryEngine,
        (INDEX,),
        {"llm": LLM},
        "OrderPreservingQueryEngine(retriever=index.as_retriever(), llm=...)",
    ),
    (
        OrderPreservingQueryEngine,
        (RETRIEVER, SimilarityPostprocessor()),
        {},
        "OrderPreservingQueryEngine(retriever=retriever, node_postprocessors=[postprocessor])",
    ),
    (OrderPreservingRetriever, (RETRIEVER,), {"k": 3}, "OrderPreservingRetriever(retriever=retriever, k=...)"),
    (OrderPreservingPostprocessor, (INDEX,), {}, "OrderPreservingPostprocessor(index=index)"),
]


@pytest.mark.parametrize(("cls", "args", "options", "instead"), POSITIONAL)
def test_positional_arguments_are_told_their_names(cls: Any, args: Any, options: dict[str, Any], instead: str):
    name = cls.__name__
    with pytest.raises(OptionError, match=re.escape(f"{name} takes keyword arguments only; write {instead}")):
        cls(*args, **options)


@pytest.mark.parametrize(
    ("cls", "argument"),
    [(OrderPreservingPostprocessor, numbered([1])), (StampPositions, "book")],
    ids=["nodes", "text"],
)
def test_positional_arguments_that_could_be_anything_are_told_that_they_need_a_name(cls: Any, argument: Any):
    with pytest.raises(OptionError, match=f"takes keyword arguments only, got {type(argument).__name__}$"):
        cls(argument)
