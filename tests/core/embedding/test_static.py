import socket

import pytest
import wordllama

from oprag import DocumentIndex, LocalEmbedder, build_context
from oprag.embedding.cosine import as_vectors
from tests.helpers import run_python

PETS = {"pets": "Cats purr. Dogs bark. Parrots talk.", "tools": "A hammer drives nails. A saw cuts wood."}


@pytest.fixture(scope="module")
def embedder():
    return LocalEmbedder()


def test_vectors_are_of_one_size_and_always_the_same(embedder):
    vectors = embedder.embed_documents(["Cats purr.", "", "A hammer drives nails."])
    assert vectors.shape == (3, 256)
    assert (vectors == LocalEmbedder().embed_questions(["Cats purr.", "", "A hammer drives nails."])).all()
    assert embedder.embed_documents([]).shape == (0, 256)


def test_a_text_has_the_same_vector_beside_longer_ones(embedder):
    alone = as_vectors(embedder.embed_documents(["Cats purr."]), 1)
    beside = as_vectors(embedder.embed_documents(["Cats purr.", "A hammer drives nails. " * 50]), 2)
    assert abs(alone[0] - beside[0]).max() < 1e-6


def test_near_meanings_are_near(embedder):
    index = DocumentIndex.from_texts(PETS, embedder, embedder.tokenizer, chunk_size=5)
    assert "saw" in build_context(index.search("Which tool cuts wood?", k=1)).text
    assert index.search("Which pet barks?", k=1)[0].metadata["source"] == "pets"


@pytest.mark.parametrize("text", ["half \ud83d of a pair", "\ud800", "日本 😀", "\x00"])
def test_any_text_can_be_embedded_counted_and_split(embedder, text):
    assert embedder.embed_documents([text]).shape == (1, 256)
    assert embedder.count_tokens(text) >= 1
    index = DocumentIndex.from_texts({"s": text * 3}, embedder, embedder.tokenizer, chunk_size=2)
    assert build_context(index.search("?", k=99), token_budget=99, count_tokens=embedder.count_tokens).text == text * 3


def test_tokens_are_those_of_the_models_tokenizer_without_limits(embedder):
    assert embedder.count_tokens("") == 0
    assert embedder.count_tokens("word " * 3000) >= 3000
    assert embedder.tokenizer.truncation is None
    assert embedder.tokenizer.padding is None


def test_an_installation_without_its_files_is_refused_and_nothing_is_downloaded(monkeypatch, tmp_path):
    asked = []

    def refuse(host, *args, **kwargs):
        asked.append(host)
        raise OSError("there is no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(wordllama, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(FileNotFoundError):
        LocalEmbedder()
    assert asked == []


OFFLINE = """
import logging, socket
handlers, level = list(logging.getLogger().handlers), logging.getLogger().level

def refuse(*args, **kwargs):
    raise AssertionError("the network was used")

socket.socket.connect = refuse
socket.getaddrinfo = refuse
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from oprag import LocalEmbedder
    print(LocalEmbedder().embed_questions(["offline"]).shape)
assert (handlers, level) == (logging.getLogger().handlers, logging.getLogger().level)
"""


def test_it_needs_no_network_and_leaves_logging_alone(tmp_path):
    assert run_python(OFFLINE, HOME=str(tmp_path), HF_HOME=str(tmp_path)) == "(1, 256)\n"
    assert list(tmp_path.iterdir()) == []
