import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import OptionError
from oprag.compare.metrics import choice_accuracy
from oprag.compare.metrics.choices import REVISIONS

# Prediction, labels, and what the official function gives at the first and at the second commit, seen by running it.
OFFICIAL = [
    ("A", ["Cats", "A"], 1, 1),
    ("A. Cats", ["Cats", "A"], 1, 1),
    ("B. Cats", ["Cats", "A"], 0, 0),
    ("Because he fled", ["Cats", "B"], 1, 1),
    ("Don't know", ["Cats", "D"], 1, 1),
    ("b", ["Cats", "B"], 0, 0),
    (" Because he fled", ["Cats", "B"], 0, 1),
    (" B. Cats", ["Cats", "B"], 1, 1),
    ("\nB", ["Cats", "B"], 1, 1),
    ("Mill Lane", ["Mill Lane", "B"], 0, 1),
    ("It was Mill Lane", ["Mill Lane", "B"], 0, 0),
    ("the answer is: B", ["Mill Lane", "B"], 1, 1),
    ("the answer is:\nB", ["Mill Lane", "B"], 1, 1),
    ("the answer is:B", ["Mill Lane", "B"], 0, 0),
    ("answer: Mill Lane, I think", ["Mill Lane", "B"], 1, 1),
    ("the answer is Mill Lane", ["Mill Lane", "B"], 1, 1),
    ("the answer is 'B'", ["Mill Lane", "B"], 1, 1),
    ("the right option is B", ["Mill Lane", "B"], 1, 1),
    ("the answer is option B", ["Mill Lane", "B"], 0, 0),
    ("the answer is: Cats", ["Mill Lane", "C"], 1, 1),
    ("the answer is", ["Mill Lane", "B"], 0, 0),
    ("the answer is:", ["Mill Lane", "B"], 0, 0),
    ("The Answer is B", ["Mill Lane", "B"], 1, 1),
    ("the answer is: C. No, the answer: B", ["Mill Lane", "B"], 0, 0),
    ("option is C, answer: B", ["Mill Lane", "B"], 1, 1),
    ("the answer is 12 o'clock", ["12 o'clock", "B"], 0, 0),
    ("12 o'clock", ["12 o'clock", "B"], 0, 1),
    ("I choose B or C", ["x", "B"], 1, 1),
    ("I choose B or C", ["x", "C"], 0, 0),
    ("It is A man", ["x", "A"], 1, 1),
    ("options AB, B", ["x", "B"], 0, 0),
    ("I\tthink B", ["x", "B"], 1, 1),
    ("no idea", ["x", "B"], 0, 0),
    (" ", ["x", "B"], 0, 0),
    ("\xa0C", ["x", "C"], 1, 1),
    ("E", ["x", "D"], 0, 0),
    ("(B) Mill Lane", ["Mill Lane", "B"], 0, 0),
    ("*B*", ["x", "B"], 0, 0),
    ("the answer is", ["", "B"], 0, 0),
    ("the answer is C", ["", "B"], 1, 1),
]


@pytest.mark.parametrize(("prediction", "labels", "first", "second"), OFFICIAL)
def test_it_is_the_official_accuracy_with_its_quirks(prediction, labels, first, second):
    scores = [choice_accuracy(prediction, labels, revision=revision) for revision in REVISIONS]
    assert scores == [first, second]
    # The newest official rule, unless another is named.
    assert choice_accuracy(prediction, labels) == second


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_empty_prediction_is_wrong(revision):
    assert choice_accuracy("", ["Cats", "A"], revision=revision) == 0


@given(st.text(), st.text(min_size=1), st.sampled_from("ABCD"), st.sampled_from(REVISIONS))
def test_a_letter_at_the_start_decides_alone(behind, option, letter, revision):
    for first in "ABCD":
        score = choice_accuracy(first + behind, [option, letter], revision=revision)
        assert score == (first in {letter, option})


@given(st.text(), st.lists(st.text(), min_size=1, max_size=3), st.sampled_from(REVISIONS))
def test_any_text_is_right_or_wrong(prediction, labels, revision):
    score = choice_accuracy(prediction, labels, revision=revision)
    assert score in {0.0, 1.0}
    assert isinstance(score, float)
    assert choice_accuracy(prediction, labels[::-1], revision=revision) == score


def test_lone_surrogates_are_text_like_any_other():
    assert choice_accuracy("\ud800 answer is: \udfff", ["\udfff", "A"]) == 1


def test_an_unknown_revision_is_refused():
    with pytest.raises(OptionError, match="revision must be one of 0ce4c976, 88b3daa6, got 'main'"):
        choice_accuracy("A", ["Cats", "A"], revision="main")  # type: ignore[arg-type]
