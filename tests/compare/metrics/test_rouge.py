import random
import re
from functools import cache
from importlib import import_module
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.metrics.functions import rouge_l
from tests.helpers import run_python

package: Any = import_module("rouge_score.rouge_scorer")
words = st.sampled_from(["bear", "Bears", "honey", "ate", "eating", "the", "x1", "...", "café", "\n"])
texts = st.lists(words, max_size=10).map(" ".join)
answer_lists = st.lists(texts, min_size=1, max_size=3)


@given(texts, answer_lists)
def test_it_is_the_best_of_the_package(prediction, answers):
    scores = package.RougeScorer(["rougeL"]).score_multi(answers, prediction)
    assert rouge_l(prediction, answers) == scores["rougeL"].fmeasure


def test_long_texts_score_what_the_package_scores():
    rng = random.Random(1)
    for sizes in ((300, 400), (500, 90), (7, 600)):
        prediction, answer = (" ".join(rng.choices("abcdefgh", k=size)) for size in sizes)
        expected = package.RougeScorer(["rougeL"]).score(answer, prediction)["rougeL"].fmeasure
        assert rouge_l(prediction, [answer]) == expected


def longest_common(first: tuple[str, ...], second: tuple[str, ...]) -> int:
    @cache
    def longest(i: int, j: int) -> int:
        if not i or not j:
            return 0
        if first[i - 1] == second[j - 1]:
            return longest(i - 1, j - 1) + 1
        return max(longest(i - 1, j), longest(i, j - 1))

    return longest(len(first), len(second))


@given(texts, answer_lists)
def test_it_is_the_f_measure_of_the_longest_common_subsequence(prediction, answers):
    def tokens(text: str) -> tuple[str, ...]:
        return tuple(re.findall("[a-z0-9]+", text.lower()))

    expected = []
    for answer in answers:
        size = len(tokens(prediction)) + len(tokens(answer))
        expected.append(2 * longest_common(tokens(prediction), tokens(answer)) / size if size else 0)
    assert rouge_l(prediction, answers) == pytest.approx(max(expected))


@given(texts, answer_lists)
def test_range_and_sequence_of_the_answers(prediction, answers):
    score = rouge_l(prediction, answers)
    assert isinstance(score, float)
    assert 0 <= score <= 1
    assert all(rouge_l(prediction, order) == score for order in permutations(answers))


@given(texts.filter(lambda text: re.search("[a-z0-9]", text.lower())))
def test_the_same_text_scores_one(text):
    assert rouge_l(text, ["something else", text]) == 1


@pytest.mark.parametrize(
    ("prediction", "answer"), [("", "bear"), ("bear", ""), ("", ""), ("...", "bear"), ("bear", "!")]
)
def test_empty_texts_score_zero(prediction, answer):
    assert rouge_l(prediction, [answer]) == 0


def test_without_the_package_the_error_names_the_extra():
    code = """
import sys
sys.modules["rouge_score"] = None
from oprag.errors import MissingExtraError
from oprag.compare.metrics.functions import rouge_l
try:
    rouge_l("bear", ["bear"])
except MissingExtraError as error:
    print(error)
"""
    assert (
        run_python(code) == "ROUGE-L requires an optional dependency; install it with: pip install 'oprag[compare]'\n"
    )
