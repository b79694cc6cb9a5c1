"""The kinds of search of a `DocumentIndex`."""

import copy
import pickle
import sys
from itertools import pairwise

import numpy as np
import pytest

from oprag import DocumentIndex, build_context
from oprag.errors import EmbeddingError, OptionError
from oprag.index.document_index import SearchKind, rrf
from tests.core.index.test_index import index_of, numbers, scores
from tests.helpers import WordEmbedder, prose, ranks, word_offsets

BOOK = {"book": prose(3000, seed=5), "sequel": prose(500, seed=6)}
WORDS = BOOK["book"].split()
QUESTIONS = [
    f"{WORDS[9]} and {WORDS[2500]}",
    WORDS[5],
    f"Where is {WORDS[700]}?",
    f"{WORDS[3]} {WORDS[3]} {WORDS[4]}",
    "zzz",
]
SEARCHES: list[SearchKind] = ["dense", "bm25", "hybrid"]


@pytest.fixture(scope="module")
def index():
    return DocumentIndex.from_texts(BOOK, WordEmbedder(), word_offsets, chunk_size=12)


def places(hits):
    return [(hit.metadata["source"], hit.metadata["chunk_index"]) for hit in hits]


def test_bm25_finds_the_chunk_with_the_word_and_nothing_without_one(index):
    (hit,) = index.search(f"{WORDS[31].upper()} zzz", 50, search="bm25")
    assert WORDS[31] in hit.text
    assert index.search("zzz", 50, search="bm25") == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_hybrid_fuses_both_whole_rankings(index, question):
    everything = len(index)
    number = {place: n for n, place in enumerate(places(index.chunks))}
    rankings = [
        np.array([number[place] for place in places(index.search(question, everything, search=search))], dtype=int)
        for search in ("dense", "bm25")
    ]
    fused = rrf(rankings, everything)
    hits = index.search(question, everything, search="hybrid")
    assert [number[place] for place in places(hits)] == np.argsort(-fused, kind="stable").tolist()
    assert scores(hits) == np.sort(fused)[::-1].tolist()


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_larger_k_adds_hits_behind_those_of_a_smaller_one(index, question, search):
    found = [index.search(question, k, search=search) for k in (1, 8, 16, 128, len(index) + 5)]
    for fewer, more in pairwise(found):
        assert fewer == more[: len(fewer)]


@pytest.mark.parametrize("search", SEARCHES)
def test_hits_have_rank_score_vector_and_place(index, search):
    hits = index.search(QUESTIONS[0], 2, search=search)
    assert ranks(hits) == list(range(len(hits)))
    for hit in hits:
        assert isinstance(hit.score, float)
        assert hit.vector is not None
        np.testing.assert_allclose(np.linalg.norm(hit.vector), 1, rtol=1e-5)
    assert build_context(hits).kept


@pytest.mark.parametrize("search", ["sparse", "", 5, ["dense"]])
def test_an_unknown_search_is_refused(index, search):
    with pytest.raises(OptionError, match="search must be one of dense, bm25, hybrid"):
        index.search("ocean5", 3, search=search)


# --- without an embedder ---


@pytest.fixture
def plain():
    return DocumentIndex.from_texts(BOOK, None, word_offsets, chunk_size=12)


def test_without_an_embedder_words_can_be_searched_for(index, plain):
    for question in QUESTIONS:
        found = plain.search(question, 30, search="bm25")
        assert found == index.search(question, 30, search="bm25")
        assert all(hit.vector is None for hit in found)
    assert plain.vectors.shape == (len(plain), 0)


@pytest.mark.parametrize("search", ["dense", "hybrid"])
def test_without_an_embedder_the_others_are_refused(plain, search):
    with pytest.raises(OptionError, match=rf'search="{search}" requires vectors.*use search="bm25"'):
        plain.search("ocean5", 3, search=search)
    with pytest.raises(OptionError, match="requires vectors"):
        DocumentIndex([], []).search("ocean5", 3, search=search)


def test_without_an_embedder_bm25_is_the_default(plain):
    assert plain.search(QUESTIONS[0], 30) == plain.search(QUESTIONS[0], 30, search="bm25")
    assert DocumentIndex([], []).search("ocean5", 3) == []


def test_without_an_embedder_a_question_has_no_vector(plain):
    with pytest.raises(EmbeddingError, match="this index has no embedder"):
        plain.question_vector("ocean5")


@pytest.mark.parametrize(("vectors", "embedder"), [(None, WordEmbedder()), ([[1.0]], None)])
def test_vectors_and_an_embedder_belong_together(vectors, embedder):
    with pytest.raises(EmbeddingError):
        DocumentIndex(["a"], [{}], vectors, embedder)


def test_nothing_of_bm25_is_loaded_for_a_dense_search(index, monkeypatch):
    monkeypatch.setitem(sys.modules, "bm25s", None)
    fresh = index_of(np.eye(3), np.eye(3))
    assert numbers(fresh.search("1", 1)) == [1]


@pytest.mark.parametrize("by_words", [False, True])
def test_an_index_can_be_copied_and_sent_to_another_process(by_words):
    index = DocumentIndex.from_texts(BOOK, None if by_words else WordEmbedder(), word_offsets, chunk_size=12)
    hits = index.search(QUESTIONS[0], 9, "bm25")
    for other in (copy.copy(index), copy.deepcopy(index), pickle.loads(pickle.dumps(index))):
        assert other.search(QUESTIONS[0], 9, "bm25") == hits
        if not by_words:
            assert other.search(QUESTIONS[0], 9) == index.search(QUESTIONS[0], 9)


def test_the_formula_of_the_paper():
    # Ranks count from 1, and the constant is 60.
    assert rrf([np.array([2, 0, 1])], 4).tolist() == [1 / 62, 1 / 63, 1 / 61, 0.0]
    assert rrf([np.array([0, 1]), np.array([1, 0])], 2).tolist() == [1 / 61 + 1 / 62, 1 / 62 + 1 / 61]
