"""Tenants share one cache of vectors. No vector of another model, or of other settings, may come out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import NodeWithScore, TextNode
from pydantic import BaseModel, Field, PrivateAttr

from oprag import CacheWarning, DocumentIndex, VectorCache
from oprag.langchain import OrderPreservingCompressor, as_embedder
from oprag.llama_index import OrderPreservingPostprocessor

TEXTS = ("One text.", "Another text.")


class Provider(BaseModel, Embeddings):
    """The settings that providers' models have in LangChain."""

    model: str = "embed-3"
    dimensions: int = 4
    organization: str | None = None
    default_headers: dict[str, str] = Field(default_factory=dict)
    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    query_prefix: str = ""
    _calls: list[str] = PrivateAttr(default_factory=list)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self._calls.extend(texts)
        return [[1.0] * self.dimensions for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0] * self.dimensions


class Own(Embeddings):
    """An application's own model, whose settings are attributes and no parameters."""

    prefix = ""

    def __init__(self) -> None:
        self.model = "own"
        self.dimensions = 4
        self.normalize = False
        self._calls: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self._calls.extend(texts)
        return [[1.0] * self.dimensions for _ in texts]

    def embed_query(self, text: str) -> list[float]:
        return [1.0] * self.dimensions


@dataclass
class Options:
    window: int = 512


class Settings:
    def __init__(self) -> None:
        self.instruction = "query: "


class Composed(Own):
    """One with its settings in objects of their own."""

    def __init__(self, options: Options, settings: Settings) -> None:
        super().__init__()
        self.options, self.settings = options, settings


class Adjustable(Own):
    """One with a mapping that is changed in place."""

    def __init__(self, model_kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.model_kwargs = model_kwargs


Change = Callable[[Any], None]


def change(path: str, value: Any) -> Change:
    """Sets an attribute, or an item of a mapping in one."""

    def made(model: Any) -> None:
        *parents, last = path.split(".")
        for parent in parents:
            model = getattr(model, parent)
        if isinstance(model, dict):
            model[last] = value
        else:
            setattr(model, last, value)

    return made


def embed(model: Any, cache: VectorCache) -> list[str]:
    """The texts that a model is asked for, beside what the cache has."""
    inner = getattr(model, "embeddings", model)
    inner._calls.clear()
    compressor = OrderPreservingCompressor(embeddings=model, vector_cache=cache, redundancy_threshold=1.0)
    compressor.compress_documents([Document(text, metadata={"source": "s"}) for text in TEXTS], "question")
    asked = list(inner._calls)
    inner._calls.clear()
    return asked


@pytest.mark.parametrize(
    ("make", "changed"),
    [
        *(
            (make, changed)
            for make in (Provider, lambda: as_embedder(Provider()))
            for changed in (
                change("model", "embed-4"),
                change("dimensions", 8),
                change("organization", "another"),
                change("default_headers.X-Model-Revision", "2"),
                change("model_kwargs.truncate", "END"),
                change("query_prefix", "query: "),
            )
        ),
        (Own, change("prefix", "query: ")),
        (Own, change("dimensions", 8)),
        (Own, change("normalize", True)),
        (Own, change("added_later", "query: ")),
        (lambda: Composed(Options(), Settings()), change("options.window", 64)),
        (lambda: Composed(Options(), Settings()), change("settings.instruction", "passage: ")),
        (lambda: Adjustable({}), change("model_kwargs.truncate", "END")),
    ],
)
def test_a_model_with_changed_settings_is_another_one(make, changed):
    cache, model = VectorCache(), make()
    assert embed(model, cache) == [*TEXTS]
    assert embed(model, cache) == []
    changed(getattr(model, "embeddings", model))
    assert embed(model, cache) == [*TEXTS]
    # And so is another object with these settings.
    if isinstance(getattr(model, "embeddings", model), Provider):
        other = Provider()
        assert embed(other, cache) == []
        changed(other)
        assert embed(other, cache) == []


def test_a_prefix_of_a_class_counts(monkeypatch):
    cache, model = VectorCache(), Own()
    assert embed(model, cache) == [*TEXTS]
    monkeypatch.setattr(Own, "prefix", "query: ")
    assert embed(model, cache) == [*TEXTS]


def test_settings_that_change_while_the_model_works_leave_nothing_in_the_cache():
    class Changing(Own):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            vectors = super().embed_documents(texts)
            self.prefix = "query: " if self.prefix == "" else ""
            return vectors

    cache = VectorCache()
    with pytest.warns(CacheWarning, match="settings of the embedder .*Changing.* changed while it was embedding"):
        embed(Changing(), cache)
    assert len(cache) == 0


class Node(BaseEmbedding):
    """A model of LlamaIndex, which keeps a part of its settings privately."""

    model_name: str = "node"
    dimensions: int = 4
    additional_kwargs: dict[str, Any] = Field(default_factory=dict)
    _calls: list[str] = PrivateAttr(default_factory=list)
    _engine: str = PrivateAttr("ada")

    def _get_query_embedding(self, query: str) -> list[float]:
        return [1.0] * self.dimensions

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        self._calls.append(text)
        return [1.0] * self.dimensions


@pytest.mark.parametrize(
    "changed", [change("dimensions", 8), change("additional_kwargs.user", "b"), change("_engine", "babbage")]
)
def test_a_model_of_llama_index_with_changed_settings_is_another_model(changed):
    cache, model = VectorCache(), Node()
    postprocessor = OrderPreservingPostprocessor(embed_model=model, vector_cache=cache, redundancy_threshold=1.0)
    metadata = [{"file_name": "a", "chunk_index": number} for number in range(len(TEXTS))]
    nodes = [
        NodeWithScore(node=TextNode(text=text, metadata=about)) for text, about in zip(TEXTS, metadata, strict=True)
    ]
    postprocessor.postprocess_nodes(nodes)
    postprocessor.postprocess_nodes(nodes)
    assert len(model._calls) == len(TEXTS)
    changed(model)
    postprocessor.postprocess_nodes(nodes)
    assert len(model._calls) == 2 * len(TEXTS)


def test_an_index_remembers_no_question_of_other_settings():
    class Telling(Provider):
        """One whose vectors tell its prefix."""

        def embed_query(self, text: str) -> list[float]:
            return [float(len(self.query_prefix)), 1.0]

    model = Telling()
    index = DocumentIndex(list(TEXTS), [{}, {}], [[1, 0], [0, 1]], as_embedder(model))
    before = index.question_vector("question")
    model.query_prefix = "query: "
    assert index.question_vector("question").tolist() != before.tolist()
