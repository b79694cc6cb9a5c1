import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag.compare.metrics.functions import choice_accuracy

# Prediction, labels, and what the official function gives, seen by running it.
OFFICIAL = [
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


@pytest.mark.parametrize(("prediction", "labels", "score"), OFFICIAL)
def test_it_is_the_official_accuracy_with_its_quirks(prediction, labels, score):
    assert choice_accuracy(prediction, labels) == score


@given(st.text(), st.text(min_size=1), st.sampled_from("ABCD"))
def test_a_letter_at_the_start_decides_alone(rest, option, letter):
    for first in "ABCD":
        assert choice_accuracy(first + rest, [option, letter]) == (first in {letter, option})
