import re
import string
import unicodedata
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.metrics.functions import (
    WITHOUT_SPACES,
    answer_cosine,
    exact_match,
    long_context_share,
    normalized_words,
    paper_token_usage,
    token_f1,
)

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
