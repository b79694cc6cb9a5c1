"""Messages name the option for the embedding model by the word of the framework in which they appear."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from llama_index.core import Settings
from llama_index.core.llms import MockLLM
from pydantic import ValidationError

from oprag.langchain import OrderPreservingChain
from oprag.llama_index import OrderPreservingQueryEngine
from tests.adapters.langchain.chain.conftest import Found
from tests.adapters.llama_index.conftest import ListRetriever
from tests.helpers import WordEmbedder


def chain(**options: Any) -> Any:
    return OrderPreservingChain(llm=FakeListChatModel(responses=["x"]), retriever=Found(documents=[]), **options)


def engine(**options: Any) -> Any:
    return OrderPreservingQueryEngine(llm=MockLLM(), retriever=ListRetriever([]), **options)


BOTH = [pytest.param(chain, "embeddings", id="langchain"), pytest.param(engine, "embed_model", id="llama_index")]


@pytest.mark.parametrize(("make", "option"), BOTH)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "reciprocal"}, "method 'reciprocal' requires {0}, to compare answers with the question; pass {0}="),
        ({"method": "map_rerank", "rank_by": "cosine"}, 'rank_by="cosine" requires {0}; pass {0}=...'),
        ({"similarity_threshold": 0.5}, "thresholds require vectors, but there is no embedding model; pass {}="),
    ],
    ids=["reciprocal", "cosine", "threshold"],
)
def test_a_missing_model(make, option, options, message, monkeypatch):
    monkeypatch.setattr(Settings, "_embed_model", None)
    with pytest.raises(ValidationError) as caught:
        make(**options)
    assert message.format(option) in str(caught.value)


@pytest.mark.parametrize(("make", "option"), BOTH)
def test_what_is_not_a_model(make, option):
    with pytest.raises(ValidationError, match=f"{option} must be"):
        make(**{option: "small"})


@pytest.mark.parametrize(
    ("make", "option", "instead"), [(chain, "embedding", "embeddings"), (engine, "embeddings", "embed_model")]
)
def test_another_word_is_told_the_right_one(make, option, instead):
    with pytest.raises(ValidationError, match=f"unknown option '{option}'; .*use {instead}="):
        make(**{option: WordEmbedder()})
