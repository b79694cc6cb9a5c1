import unicodedata

import pytest

from oprag.methods import MethodAnswers
from tests.core.methods.helpers import QUESTION, World, parts

HOSTILE = "<script>alert('x')</script> & \"quoted\" \x1b[2J\x00\u202e{x}\n\n| a |"


def compare(*methods: str, question: str = QUESTION, answer: str = "It sank.") -> MethodAnswers:
    answers = tuple(
        World(parts(3), answer=answer, refine=answer, reduce=answer).answer(question, method=method)
        for method in methods
    )
    return MethodAnswers(question, answers)


def test_it_is_the_sequence_of_its_answers():
    compared = compare("stuff", "refine")
    assert len(compared) == 2
    assert [answer.method for answer in compared] == ["stuff", "refine"]
    assert compared[-1] is compared.answers[1]
    assert compared[:1] == compared.answers[:1]
    assert compared.answers[0] in compared


def test_it_prints_as_a_table():
    lines = str(compare("stuff", "refine")).splitlines()
    assert lines[0] == f"question: {QUESTION}"
    assert lines[1].split() == ["method", "calls", "tokens", "in", "tokens", "out", "seconds", "passages", "answer"]
    assert lines[2].split()[:2] == ["stuff", "1"]
    assert lines[2].split()[2].startswith("~")
    assert lines[3].split()[:2] == ["refine", "3"]
    assert lines[2].endswith("It sank.")
    assert len({line.index("answer" if "answer" in line else "It sank.") for line in lines[1:]}) == 1
    assert repr(compare()) == str(compare())


@pytest.mark.parametrize("text", [HOSTILE, "a\r\nb", "\x1b]0;title\x07", "\ud800"])
def test_hostile_text_stays_on_its_line(text):
    printed = str(compare("stuff", question=f"Why {text}?", answer=text))
    assert {letter for letter in printed if unicodedata.category(letter) in {"Cc", "Cf", "Cs"}} == {"\n"}
    assert len(printed.splitlines()) == 3
