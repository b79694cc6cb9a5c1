"""Metrics against the official functions of their authors."""

import re
import string
import unicodedata
from importlib import import_module
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oprag.compare.metrics.functions import (
    WITHOUT_SPACES,
    answer_cosine,
    choice_accuracy,
    evidence_coverage,
    exact_match,
    inverted_pairs,
    long_context_share,
    mrr,
    ndcg,
    normalized_words,
    paper_token_usage,
    recall,
    rouge_l,
    token_f1,
    touching,
)
from oprag.errors import EmbeddingError
from tests.helpers import run_python

# What ∞Bench's own function gives, seen by running it.
OFFICIAL = [
    ("", ["bear"], 0.0),
    ("", [""], 0.0),
    ("the", ["a"], 0.0),
    ("The.", ["The."], 0.0),
    ("the bear", ["Bear!"], 1.0),
    ("bear bear", ["bear"], 0.6666666666666666),
    ("a bear ate", ["bear", "the wolf ate a bear"], 0.8),
    ("well-known", ["well known"], 0.0),
    ("well known", ["well-known"], 0.0),
    ("BEAR", ["bear"], 1.0),
    ("A.N. Other", ["other"], 1.0),
    ("“bear”", ["bear"], 0.0),
    ("bear—wolf", ["bear wolf"], 0.0),
    ("bear\xa0wolf", ["bear wolf"], 1.0),
    ("theme", ["the me"], 0.0),
    ("bear\nwolf", ["wolf bear"], 1.0),
    ("3.5", ["35"], 1.0),
    ("ÉTÉ", ["été"], 1.0),
    ("no bear at all here", ["bear", "all"], 0.33333333333333337),
    ("x y z", ["a b c", "q"], 0.0),
    ("\ud800 bear", ["bear"], 0.6666666666666666),
]

# Scripts without spaces between words have a rule of their own.
spaced = st.text(st.characters().filter(lambda letter: not WITHOUT_SPACES.search(letter)), max_size=20)
pieces = st.sampled_from(["bear", "Bear", "wolf", "the", "A", "an", "fox.", "(fox)", "ate", "-", "two\n", "été"])
spaced_texts = st.lists(pieces, max_size=8).map(" ".join) | spaced
texts = spaced_texts | st.text(max_size=20) | st.text("維生素a the B。、“” ", max_size=20)
answer_lists = st.lists(texts, min_size=1, max_size=4)


@pytest.mark.parametrize(("prediction", "answers", "score"), OFFICIAL)
def test_f1_is_the_official_one_to_the_last_bit(prediction, answers, score):
    assert token_f1(prediction, answers) == score


def words_by_hand(text: str) -> list[str]:
    """The four steps, each in its own words."""
    lowered = text.lower()
    without_punctuation = re.sub("[" + re.escape(string.punctuation) + "]", "", lowered)
    without_articles = re.sub(r"\bthe\b", " ", re.sub(r"\ban?\b", " ", without_punctuation))
    return re.findall(r"\S+", without_articles)


@given(spaced_texts)
def test_normalization_is_the_four_steps(text):
    words = normalized_words(text)
    assert words == words_by_hand(text)
    assert not set(string.punctuation) & set("".join(words))


@pytest.mark.parametrize("metric", [token_f1, exact_match])
@given(prediction=texts, answers=answer_lists)
def test_range_best_of_many_and_sequence(metric, prediction, answers):
    score = metric(prediction, answers)
    assert isinstance(score, float)
    assert 0 <= score <= 1
    assert score == max(metric(prediction, [answer]) for answer in answers)
    assert all(metric(prediction, order) == score for order in permutations(answers))
    assert exact_match(prediction, answers) <= token_f1(prediction, answers) + 1e-12


@pytest.mark.parametrize(
    ("prediction", "answers", "f1", "exact"),
    [
        # Chinese, Japanese, Thai, Lao, Khmer, Burmese: the gold answer within a sentence, and alone.
        ("船长是艾达布兰德。", ["艾达布兰德"], 5 / 6.5, 0),
        ("「艾达布兰德」。", ["艾达布兰德"], 1, 1),
        ("首都は東京です。", ["東京"], 4 / 9, 0),
        ("東京。", ["東京"], 1, 1),
        ("เมืองหลวงคือกรุงเทพ", ["กรุงเทพ"], 7 / 13, 0),
        ("กรุงเทพ ฯ", ["กรุงเทพ"], 14 / 15, 0),
        ("ນະຄອນຫຼວງ", ["ນະຄອນ"], 5 / 7, 0),
        ("ភ្នំពេញ។", ["ភ្នំពេញ"], 1, 1),
        ("ရန်ကုန်၊", ["ရန်ကုန်"], 1, 1),
        # Other words, and the spaces and punctuation between them.
        ("iPhone 手机", ["IPHONE手机"], 1, 1),
        ("iPhone", ["iPhone 手机"], 0.5, 0),
        ("PDF、DOCX和TXT", ["TXT、PDF、DOCX"], 6 / 7, 0),
        ("“二十”——《书》……", ["二十书"], 1, 1),
        ("２０２１年", ["2021年"], 1, 1),
        ("2021。", ["2021"], 1, 1),
        ("1,000人", ["1000 人"], 1, 1),
        # Korean separates words.
        ("서울。", ["서울"], 1, 1),
        ("서울 특별시", ["서울"], 2 / 3, 0),
        # A letter is not an article.
        ("维生素 A", ["维生素A"], 1, 1),
        ("维生素 A", ["维生素"], 6 / 7, 0),
        ("the Shijing (诗经)", ["Shijing (诗经)"], 1, 1),
        ("用the iPhone", ["用 iPhone"], 1, 1),
        ("。", ["。"], 0, 0),
    ],
)
def test_scripts_without_spaces_are_split_by_character(prediction, answers, f1, exact):
    assert token_f1(prediction, answers) == pytest.approx(f1)
    assert exact_match(prediction, answers) == exact


chinese = st.lists(st.sampled_from([*"船长是艾达五月带盐回。，“”《》", " pdf ", " 2021 ", " iPhone "]), max_size=12)


@given(chinese.map("".join))
def test_chinese_is_split_as_by_the_scorer_of_mlqa(text):
    """MLQA removes all punctuation, and splits a text at white space and around Chinese characters."""
    text = f"船{text}"
    left = "".join(letter for letter in text.lower() if unicodedata.category(letter)[0] != "P")
    assert normalized_words(text) == re.findall(r"[\u4e00-\u9fa5]|[^\u4e00-\u9fa5\s]+", left)


def test_the_formula_of_the_paper():
    assert paper_token_usage("one two\n three") == 4
    assert paper_token_usage("") == paper_token_usage(" \n") == 0


def test_the_share_of_the_long_context():
    assert long_context_share(25, 100) == 0.25
    assert long_context_share(0, 100) == 0
    assert long_context_share(125, 100) == 1.25
    assert long_context_share(0, 0) is None


numbers = st.floats(-1e3, 1e3).map(lambda value: round(value, 3))
vectors = st.lists(numbers, min_size=3, max_size=3)


@given(vectors, st.lists(vectors, min_size=1, max_size=4))
def test_it_is_the_best_cosine(prediction, answers):
    expected = []
    for answer in answers:
        lengths = np.linalg.norm(prediction) * np.linalg.norm(answer)
        expected.append(float(np.dot(prediction, answer) / lengths) if lengths else 0.0)
    score = answer_cosine(prediction, answers)
    assert -1 <= score <= 1
    assert score == pytest.approx(max(expected), abs=1e-9)
    assert score == answer_cosine(prediction, answers[::-1])
    assert score == answer_cosine(np.array(prediction), np.array(answers))


def test_vectors_of_other_dimensions_are_refused():
    with pytest.raises(EmbeddingError, match="expected two vectors of the same dimension, got shapes"):
        answer_cosine([1, 0], [[1, 0, 0]])


# Prediction, labels, and what the official function gives, seen by running it.
OFFICIAL_CHOICES = [
    ("A", ["Cats", "A"], 1),
    ("A. Cats", ["Cats", "A"], 1),
    ("B. Cats", ["Cats", "A"], 0),
    ("Because he fled", ["Cats", "B"], 1),
    ("Don't know", ["Cats", "D"], 1),
    ("b", ["Cats", "B"], 0),
    (" Because he fled", ["Cats", "B"], 1),
    (" B. Cats", ["Cats", "B"], 1),
    ("\nB", ["Cats", "B"], 1),
    ("Mill Lane", ["Mill Lane", "B"], 1),
    ("It was Mill Lane", ["Mill Lane", "B"], 0),
    ("the answer is: B", ["Mill Lane", "B"], 1),
    ("the answer is:\nB", ["Mill Lane", "B"], 1),
    ("the answer is:B", ["Mill Lane", "B"], 0),
    ("answer: Mill Lane, I think", ["Mill Lane", "B"], 1),
    ("the answer is Mill Lane", ["Mill Lane", "B"], 1),
    ("the answer is 'B'", ["Mill Lane", "B"], 1),
    ("the right option is B", ["Mill Lane", "B"], 1),
    ("the answer is option B", ["Mill Lane", "B"], 0),
    ("the answer is: Cats", ["Mill Lane", "C"], 1),
    ("the answer is", ["Mill Lane", "B"], 0),
    ("the answer is:", ["Mill Lane", "B"], 0),
    ("The Answer is B", ["Mill Lane", "B"], 1),
    ("the answer is: C. No, the answer: B", ["Mill Lane", "B"], 0),
    ("option is C, answer: B", ["Mill Lane", "B"], 1),
    ("the answer is 12 o'clock", ["12 o'clock", "B"], 0),
    ("12 o'clock", ["12 o'clock", "B"], 1),
    ("I choose B or C", ["x", "B"], 1),
    ("I choose B or C", ["x", "C"], 0),
    ("It is A man", ["x", "A"], 1),
    ("options AB, B", ["x", "B"], 0),
    ("I\tthink B", ["x", "B"], 1),
    ("no idea", ["x", "B"], 0),
    (" ", ["x", "B"], 0),
    ("\xa0C", ["x", "C"], 1),
    ("E", ["x", "D"], 0),
    ("(B) Mill Lane", ["Mill Lane", "B"], 0),
    ("*B*", ["x", "B"], 0),
    ("the answer is", ["", "B"], 0),
    ("the answer is C", ["", "B"], 1),
]


@pytest.mark.parametrize(("prediction", "labels", "score"), OFFICIAL_CHOICES)
def test_it_is_the_official_accuracy_with_its_quirks(prediction, labels, score):
    assert choice_accuracy(prediction, labels) == score


@given(st.text(), st.text(min_size=1), st.sampled_from("ABCD"))
def test_a_letter_at_the_start_decides_alone(rest, option, letter):
    for first in "ABCD":
        assert choice_accuracy(first + rest, [option, letter]) == (first in {letter, option})


@pytest.mark.parametrize("prediction", ["E", "E. Mill Lane", "E) it is", "the answer is E", "I choose E."])
def test_a_question_with_more_options_has_more_letters(prediction):
    assert choice_accuracy(prediction, ["Mill Lane", "E"], "ABCDE") == 1
    assert choice_accuracy(prediction, ["x", "A"], "ABCDE") == 0


package: Any = import_module("rouge_score.rouge_scorer")
rouge_words = st.sampled_from(["bear", "Bears", "honey", "ate", "eating", "the", "x1", "...", "café", "\n"])
rouge_texts = st.lists(rouge_words, max_size=10).map(" ".join)
rouge_answers = st.lists(rouge_texts, min_size=1, max_size=3)


@given(rouge_texts, rouge_answers)
def test_it_is_the_best_of_the_package(prediction, answers):
    scores = package.RougeScorer(["rougeL"]).score_multi(answers, prediction)
    assert rouge_l(prediction, answers) == scores["rougeL"].fmeasure


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


Spans = list[tuple[str, int, int]]
spans_of = st.lists(
    st.tuples(st.sampled_from(["book", "letter"]), st.integers(0, 30), st.integers(0, 12)).map(
        lambda span: (span[0], span[1], span[1] + span[2])
    ),
    max_size=8,
)


def characters(spans: Spans) -> set[tuple[str, int]]:
    return {(document, place) for document, start, end in spans for place in range(start, end)}


@given(spans_of, spans_of)
def test_it_is_the_share_of_the_set_of_characters(spans, evidence):
    gold = characters(evidence)
    expected = len(gold & characters(spans)) / len(gold) if gold else None
    assert evidence_coverage(spans, evidence) == expected


def test_nothing_retrieved_and_no_evidence():
    assert evidence_coverage([], [("book", 0, 10)]) == 0
    assert evidence_coverage([("book", 0, 10)], []) is None
    assert evidence_coverage([("book", 0, 10)], [("book", 4, 4)]) is None


contexts = st.lists(st.tuples(st.sampled_from(["book", "letter", "note"]), st.integers(0, 6)), max_size=14, unique=True)


@given(contexts)
def test_it_is_the_share_of_the_pairs(context):
    pairs = [(first, second) for (source, first), (other, second) in combinations(context, 2) if source == other]
    expected = sum(first > second for first, second in pairs) / len(pairs) if pairs else None
    assert inverted_pairs(context) == expected


@given(spans_of, spans_of)
def test_relevant_spans_have_a_character_of_the_evidence(spans, evidence):
    gold = characters(evidence)
    expected = {place for place, span in enumerate(spans) if characters([span]) & gold}
    assert touching(spans, evidence) == expected


@settings(max_examples=200)
@given(
    st.lists(st.integers(0, 40), unique=True, max_size=30),
    st.sets(st.integers(0, 40), min_size=1, max_size=20),
    st.integers(1, 40),
)
def test_they_are_those_of_trec_eval(ranked, relevant, k):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    # trec_eval sorts by score, and knows nothing of a question for which nothing is retrieved.
    run = {str(chunk): -float(rank) for rank, chunk in enumerate(ranked)} or {"nothing": 0.0}
    judged = {"question": {str(chunk): 1 for chunk in relevant}}
    wanted = {f"recall.{k}", "recip_rank", "ndcg", f"ndcg_cut.{k}"}
    (found,) = pytrec_eval.RelevanceEvaluator(judged, wanted).evaluate({"question": run}).values()
    assert recall(ranked[:k], relevant) == pytest.approx(found[f"recall_{k}"], abs=1e-9)
    assert mrr(ranked, relevant) == pytest.approx(found["recip_rank"], abs=1e-9)
    assert ndcg(ranked, relevant) == pytest.approx(found["ndcg"], abs=1e-9)
    assert ndcg(ranked[:k], relevant, k) == pytest.approx(found[f"ndcg_cut_{k}"], abs=1e-9)
    assert ndcg(ranked, relevant, k) == ndcg(ranked[:k], relevant, k)
    assert [metric(ranked, set()) for metric in (recall, mrr, ndcg)] == [None, None, None]
