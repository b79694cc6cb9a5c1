"""How files are split and searched on the command line: `--splitter`, `--search` and `--embeddings`."""

import sys

import pytest

from oprag import DocumentIndex, LocalEmbedder, build_context
from oprag.cli import ask
from tests.cli import commands, provider
from tests.cli.commands import check_refusal
from tests.helpers import prose

TEXT = prose(400, seed=11)
WORDS = TEXT.split()
QUESTION = f"{WORDS[300]} {WORDS[20]}"


@pytest.fixture(autouse=True)
def embeddings(monkeypatch):
    """The provider's packages are there, and have embedded nothing."""
    provider.install(monkeypatch)
    ask._embedder.cache_clear()
    return provider.CohereEmbeddings


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


MODEL = ("--model", "groq:cranes")


def run(*arguments):
    return commands.run("ask", *arguments)


def json_of(*arguments):
    return commands.json_of("ask", *arguments)


# Kinds of search


@pytest.mark.parametrize("search", ["dense", "bm25", "hybrid"])
def test_the_context_is_that_of_the_index(book, search):
    data = json_of(book, QUESTION, "--k", 3, "--chunk-size", 30, "--search", search)
    embedder = LocalEmbedder()
    index = DocumentIndex.from_texts({str(book): TEXT}, embedder, embedder.tokenizer, chunk_size=30)
    expected = build_context(index.search(QUESTION, 3, search), k=3, token_budget=16_384)
    assert data["kept"] == expected.to_dict()["kept"]
    assert data["text"] == expected.text


@pytest.mark.parametrize("search", ["dense", "bm25", "hybrid"])
def test_a_threshold_is_a_cosine_with_every_search(book, search):
    data = json_of(book, QUESTION, "--search", search, "--chunk-size", 30, "--similarity-threshold", 0.35)
    dropped = [one for one in data["dropped"] if one["reason"] == "similarity_threshold"]
    assert dropped or len(data["kept"]) < 3
    assert all(one["value"] < 0.35 for one in dropped)


def test_bm25_embeds_nothing_and_asks_no_provider(book, embeddings):
    data = json_of(book, QUESTION, "--search", "bm25", "--embeddings", "cohere:down", "--chunk-size", 30)
    assert WORDS[300] in data["text"]
    assert WORDS[20] in data["text"]
    assert len(data["kept"]) == 2
    assert embeddings.questions == []


def test_answers_are_ranked_by_cosine_also_where_retrieval_embeds_nothing(book, embeddings):
    options = ("--search", "bm25", "--embeddings", "cohere:words", "--chunk-size", 30, *MODEL)
    result = run(book, QUESTION, "--method", "map_rerank", "--rank-by", "cosine", *options)
    assert result.exit_code == 0, result.output
    assert embeddings.questions
    embeddings.questions.clear()
    assert run(book, QUESTION, "--method", "stuff", *options).exit_code == 0
    assert embeddings.questions == []


# Embeddings


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nonsense", ["local or PROVIDER:MODEL", "'nonsense'"]),
        ("no-such-provider:model", ["no-such-provider", "not supported"]),
        ("cohere:keyless", ["cohere:keyless", "Did not find cohere_api_key"]),
        ("mistralai:some", ["pip install", "langchain-mistralai"]),
        ("cohere:down", ["cohere:down", "the line is down"]),
        ("cohere:silent", ["cohere:silent", "TimeoutError"]),
        ("cohere:short", ["expected 1 vector from the embedder, got an array of shape"]),
    ],
)
def test_embeddings_that_cannot_be_used(book, monkeypatch, name, words):
    monkeypatch.setitem(sys.modules, "langchain_mistralai", None)
    result = run(book, QUESTION, "--embeddings", name, "--chunk-size", 9999)
    fails = name in ("cohere:down", "cohere:silent", "cohere:short")
    check_refusal(result, *words, code=1 if fails else 2)
    assert "http" not in result.stderr


def test_without_langchain_one_sentence_says_what_to_install(book, monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain.embeddings", None)
    check_refusal(run(book, QUESTION, "--embeddings", "cohere:words"), "oprag[langchain]")
