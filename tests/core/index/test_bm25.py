"""Lexical search, held against the formula, and what the library must not do."""

import math

import numpy as np
import pytest

from oprag.index.bm25 import BM25Search, words
from tests.helpers import run_python

TEXTS = [
    "The harbour of Aldmere has nine cranes.",
    "Bread rises for three hours, and bread is baked in the harbour.",
    "A comet crossed the sky.",
    "",
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Straße, ÉTÉ; naïve!", ["straße", "été", "naïve"]),
        ("x_1 = 3.14", ["x_1", "3", "14"]),
        ("東京タワー is tall", ["東", "京", "タ", "ワ", "ー", "is", "tall"]),
        ("किताब कहाँ है", ["किताब", "कहाँ", "है"]),
        ("cafe\u0301 \ufb01nd", ["café", "find"]),
        ("don't — well-known", ["don", "t", "well", "known"]),
        (" \n…", []),
    ],
)
def test_words_are_runs_of_letters_and_digits_in_lower_case(text, found):
    assert words(text) == found


def bm25(question, texts, k1=1.5, b=0.75):
    """Lucene's formula, written down plainly; stop words count 0.3 times."""
    documents = [words(text) for text in texts]
    average = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for word in words(question):
            having = sum(word in other for other in documents)
            idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
            frequency = document.count(word)
            norm = frequency + k1 * (1 - b + b * len(document) / average)
            score += (0.3 if word in ("the", "of", "is", "in") else 1.0) * idf * frequency / norm
        scores.append(score)
    return scores


@pytest.mark.parametrize(
    "question",
    ["harbour", "Is bread baked in the harbour of Aldmere?", "comet comet", "unheard of", "the of", "zzz", "?"],
)
def test_scores_are_those_of_the_formula(question):
    np.testing.assert_allclose(BM25Search(TEXTS).scores(question), bm25(question, TEXTS), rtol=1e-5)


@pytest.mark.parametrize("texts", [[], [""], ["...", " "]])
def test_texts_without_words_score_nothing(texts):
    assert BM25Search(texts).scores("any word").tolist() == [0.0] * len(texts)


CODE = """
from oprag.index.bm25 import BM25Search
texts = [f"word{n % 7} other{n % 3} " * (n % 5 + 1) for n in range(50)]
print(BM25Search(texts).scores("word3 other1 the word5").tolist())
"""


@pytest.mark.process
def test_scores_are_the_same_under_every_hash_seed():
    assert len({run_python(CODE, PYTHONHASHSEED=seed) for seed in ("0", "1", "77")}) == 1
