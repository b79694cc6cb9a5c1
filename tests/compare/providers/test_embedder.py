"""Embedders of an experiment: what can be given, what comes back, and what they are called."""

from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from llama_index.core.embeddings import MockEmbedding
from pydantic import BaseModel

from oprag import DualEncoder, Embedder, LocalEmbedder, split_tokens
from oprag.compare.providers.specs import EmbedderSpec, ExperimentEmbedder
from oprag.errors import ExperimentError, OptionError
from tests.cli import provider
from tests.helpers import WordEmbedder

TEXT = "The harbour of Aldmere has nine cranes."


def opened(given: Any = "local", name: str | None = None, **said: Any) -> ExperimentEmbedder:
    return EmbedderSpec(given, name, **said).open()


class Hosted(BaseModel, Embeddings):
    """Embeddings of a provider that say which model they are."""

    model: str = "embed-1"
    api_key: str = "very-secret"

    def embed_documents(self, texts):
        return [[len(text), 1.0] for text in texts]

    def embed_query(self, text):
        return [1.0, len(text)]


@pytest.fixture
def cohere(monkeypatch):
    """A provider's package, as LangChain finds it."""
    from langchain.embeddings.base import _get_embeddings_class_creator

    provider.install(monkeypatch)
    yield provider.CohereEmbeddings
    _get_embeddings_class_creator.cache_clear()


class TestKinds:
    def test_the_packaged_one(self):
        embedder = opened()
        local = LocalEmbedder()
        assert isinstance(embedder, Embedder)
        np.testing.assert_array_equal(embedder.embed_documents([TEXT]), local.embed_documents([TEXT]))
        np.testing.assert_array_equal(embedder.embed_questions([TEXT]), local.embed_questions([TEXT]))
        assert (embedder.name, embedder.paid) == (local.name, False)
        assert embedder.tokenizer(TEXT) == local.count_tokens(TEXT)
        assert split_tokens(TEXT, embedder.tokenizer.tokenizer, chunk_size=3) == split_tokens(
            TEXT, local.tokenizer, chunk_size=3
        )
        assert opened(local).tokenizer.identity == embedder.tokenizer.identity
        assert opened(local).name == local.name

    def test_one_of_langchain(self):
        embedder = opened(Hosted())
        assert embedder.embed_documents(["a", "bc"]) == [[1, 1], [2, 1]]
        assert embedder.embed_questions(["abc"]) == [[1, 3]]
        assert embedder.paid
        assert embedder.name.startswith(f"{__name__}.Hosted(embed-1) ")
        assert "secret" not in embedder.name

    def test_one_of_llama_index(self):
        embedder = opened(MockEmbedding(embed_dim=3), "mock")
        assert np.shape(embedder.embed_documents(["a", "b"])) == (2, 3)
        assert np.shape(embedder.embed_questions(["a"])) == (1, 3)
        assert embedder.paid

    def test_one_of_a_provider(self, cohere):
        embedder = opened("cohere:words")
        words = WordEmbedder()
        np.testing.assert_allclose(embedder.embed_documents([TEXT]), words.embed_documents([TEXT]))
        assert embedder.paid
        assert embedder.name == opened("cohere:words").name != opened("cohere:others").name


class TestPrefixes:
    def test_they_stand_before_what_is_embedded(self):
        texts: list[str] = []

        def encode(given):
            texts.extend(given)
            return [[1.0]] * len(given)

        embedder = opened(DualEncoder("seen", encode), question_prefix="Represent this: ", document_prefix="passage: ")
        embedder.embed_questions(["a", "b"])
        embedder.embed_documents(["c"])
        assert texts == ["Represent this: a", "Represent this: b", "passage: c"]

    def test_another_prefix_is_another_embedder(self):
        given = [{}, {"question_prefix": "q"}, {"document_prefix": "q"}, {"question_prefix": "r"}]
        embedders = [opened(**prefixes) for prefixes in given]
        assert len({embedder.name for embedder in embedders}) == 4
        assert opened(question_prefix="q").name == embedders[1].name


class TestSpending:
    @pytest.mark.parametrize(("use", "paid"), [("ollama:a", False), ("openai:a", True), ("huggingface:a", False)])
    def test_what_runs_elsewhere_may_cost_money(self, use, paid):
        assert EmbedderSpec(use).may_cost is paid


class TestRefusals:
    @pytest.mark.parametrize(
        "given", [None, 3, object(), Hosted, []], ids=["none", "number", "object", "class", "list"]
    )
    def test_what_is_no_embedder(self, given):
        with pytest.raises(ExperimentError, match=r"an embedder must be local, PROVIDER:MODEL, an oprag"):
            opened(given)

    @pytest.mark.parametrize("given", ["", "words", "nobody:model", "huggingface:", f"{__name__}:Hosted"])
    def test_a_name_that_means_nothing(self, given):
        with pytest.raises(OptionError, match=r"must be local or PROVIDER:MODEL|cannot use the embeddings"):
            opened(given)

    def test_what_does_not_say_what_it_is_needs_a_name(self):
        fake = DeterministicFakeEmbedding(size=4)
        with pytest.raises(ExperimentError, match="set a unique `name`"):
            opened(fake)
        first, second = (opened(fake, name) for name in ("first", "second"))
        assert first.name != second.name
        assert first.name == opened(DeterministicFakeEmbedding(size=4), "first").name

    @pytest.mark.parametrize("given", ["local", WordEmbedder(), Hosted()], ids=["local", "ours", "langchain"])
    def test_settings_of_what_takes_none(self, given):
        with pytest.raises(ExperimentError, match=r"settings are only valid for a name|local has no settings"):
            opened(given, dimensions=3)

    def test_a_tokenizer_that_there_is_not(self):
        embedder = opened(tokenizer="words")
        with pytest.raises(OptionError, match="a tokenizer must be"):
            embedder.tokenizer(TEXT)
