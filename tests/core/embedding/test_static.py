import socket

import pytest
import wordllama

from oprag import DocumentIndex, LocalEmbedder, build_context
from tests.helpers import run_python


@pytest.fixture(scope="module")
def embedder():
    return LocalEmbedder()


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
