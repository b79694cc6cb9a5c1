"""Token F1 and exact match."""

import re
import string
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.metrics import exact_match, token_f1
from oprag.compare.metrics.answers import normalized_words

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

pieces = st.sampled_from(["bear", "Bear", "wolf", "the", "A", "an", "fox.", "(fox)", "ate", "-", "two\n", "été"])
texts = st.lists(pieces, max_size=8).map(" ".join) | st.text(max_size=20)
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


@given(texts)
def test_normalization_is_the_four_steps(text):
    words = normalized_words(text)
    assert words == words_by_hand(text)
    assert not set(string.punctuation) & set("".join(words))


@given(texts, answer_lists)
def test_f1_is_twice_the_matches_over_all_words(prediction, answers):
    scores = []
    for answer in answers:
        words, gold = words_by_hand(prediction), words_by_hand(answer)
        left, matches = list(gold), 0
        for word in words:
            if word in left:
                left.remove(word)
                matches += 1
        scores.append(2 * matches / (len(words) + len(gold)) if matches else 0.0)
    assert token_f1(prediction, answers) == pytest.approx(max(scores), abs=1e-12)


@pytest.mark.parametrize("metric", [token_f1, exact_match])
@given(prediction=texts, answers=answer_lists)
def test_range_best_of_many_and_sequence(metric, prediction, answers):
    score = metric(prediction, answers)
    assert isinstance(score, float)
    assert 0 <= score <= 1
    assert score == max(metric(prediction, [answer]) for answer in answers)
    assert all(metric(prediction, order) == score for order in permutations(answers))
    assert exact_match(prediction, answers) <= token_f1(prediction, answers) + 1e-12


@given(texts, answer_lists)
def test_the_same_text_scores_one_where_it_has_words(text, others):
    expected = 1.0 if normalized_words(text) else 0.0
    assert token_f1(text, [text]) == pytest.approx(expected)
    assert exact_match(text, [text]) == expected
    if expected:
        assert exact_match(text, [*others, text]) == 1


@pytest.mark.parametrize(
    ("prediction", "answers", "score"),
    [
        ("The Bear.", ["bear"], 1),
        ("bear", ["wolf", "A bear!"], 1),
        ("bear wolf", ["wolf bear"], 0),
        ("bear", ["bears"], 0),
        ("", [""], 0),
        ("the", ["the"], 0),
        ("", ["bear"], 0),
        ("bear", [""], 0),
        ("\udfff", ["\udfff"], 1),
    ],
)
def test_exact_match(prediction, answers, score):
    assert exact_match(prediction, answers) == score
