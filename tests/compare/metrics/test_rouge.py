import random
from importlib import import_module
from typing import Any

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
