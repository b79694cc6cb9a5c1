import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oprag import OptionError
from oprag.methods import Completion
from oprag.methods.replies import is_refusal, may_be_refusal, questions_of, rated, text_of


@pytest.mark.parametrize(
    ("said", "confidence"),
    [
        ("85", 85),
        ("0", 0),
        ("100", 100),
        ("85.5", 85.5),
        ("85,5", 85.5),
        ("85 %", 85),
        ("85%", 85),
        ("85 percent", 85),
        ("8.5/10", 85),
        ("8,5 / 10", 85),
        ("4/5", 80),
        ("17 out of 20", 85),
        ("85/100", 85),
        ("**85**", 85),
        ("<85>", 85),
        ("[85]", 85),
        ("about 85.", 85),
        ("high (85)", 85),
        ("85 (on a scale from 0 to 100)", 85),
        ("high", None),
        ("", None),
        ("150", None),
        ("101 %", None),
        ("-5", None),
        ("−5", None),
        ("11/10", None),
        ("7/0", None),
        ("9" * 400, None),
        ("9" * 5_000, None),
        ("1,000", None),
        ("<number>", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_confidences(said, confidence):
    read = rated(f"It sank.\nConfidence: {said}")
    assert read.text == "It sank."
    assert read.confidence == pytest.approx(confidence, abs=1e-9)


@pytest.mark.parametrize(
    "reply",
    [
        "Paris\nConfidence: 85",
        "Paris\n\n**Confidence:** 85",
        "Paris\n**Confidence: 85**",
        "Paris\n- Confidence: 85%",
        "Paris\nCONFIDENCE = 85",
        "Paris\nconfidence 85",
        "Paris\nConfidence - 85",
        "Paris\nConfidence – 85",
        "Paris\nConfidence level: 85",
        "Paris\nConfidence (0-100): 85",
        "Paris\nConfidence (from 0 to 100): 85",
        "Paris\nScore: 85",
        "Paris\r\nConfidence: 85\r\n",
        "Answer: Paris\nConfidence: 85",
        "**Answer:** Paris\nConfidence: 85",
        "Confidence: 85\nAnswer: Paris",
        "Confidence: 85\n\nParis",
        "Paris\nConfidence: 85\nThe passage says so.",
        "Paris Confidence: 85",
        "Paris. Confidence: 85.",
        "Paris. **Confidence:** 85",
        "Paris (confidence: 85%)",
        "Paris [Confidence: 85]",
        "Paris, confidence: 85",
        "Paris — confidence = 8.5/10",
    ],
)
def test_where_models_put_the_confidence(reply):
    read = rated(reply)
    assert (read.text.rstrip("."), read.confidence) == ("Paris", 85)


@pytest.mark.parametrize(
    "reply",
    [
        "Paris",
        "Paris, with 85 inhabitants",
        "It was said with confidence: all of them would come.",
        "He had confidence in 85 men.",
        "Confidence in the crew was restored by the captain.",
        "Score: Ajax won, in the end.",
        "confidence",
    ],
)
def test_an_answer_without_a_confidence_stays_whole(reply):
    assert rated(reply) == (reply, None)


def test_the_last_line_counts():
    assert rated("Confidence: 10 was his motto.\nParis\nConfidence: 85") == (
        "Confidence: 10 was his motto.\nParis",
        85,
    )


@pytest.mark.parametrize("reply", ["", " \n", "Confidence: 85", "**Confidence:** 85/100\n", "Answer:\nConfidence: 85"])
def test_a_confidence_or_nothing_is_no_answer(reply):
    assert rated(reply).text == ""


@pytest.mark.parametrize(
    "reply",
    [
        "A." + "\n" * 16_000 + "x",
        "A. confidence:" + " " * 1_000 + "x",
        "A.\nconfidence:" + " " * 20_000 + "x",
        "A. confidence: 85" + " " * 1_000 + "x",
        "confidence: " * 2_000,
        "confidence:\n" * 2_000,
        "A. confidence:" + "\n-" * 400 + "1x",
        "1" * 50_000,
        "A.\nConfidence: " + "1 " * 10_000,
    ],
    ids=range(9),
)
def test_a_model_that_runs_wild_takes_no_time(reply):
    started = time.process_time()
    rated(reply)
    questions_of(reply, 4)
    is_refusal(reply)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize("digits", [400, 5_000])
def test_a_scale_beyond_measure_is_no_error(digits):
    read = rated(f"It sank.\nConfidence: 5/{'9' * digits}")
    assert read.text == "It sank."
    assert read.confidence is None or read.confidence < 1


@given(st.text(), st.integers(0, 100))
def test_whatever_is_answered_the_confidence_behind_it_is_read(text, confidence):
    assert rated(f"{text}\nConfidence: {confidence}").confidence == confidence


@given(st.text())
@example("Confidence: 5/" + "9" * 5_000)
def test_no_reply_is_too_strange(reply):
    text, confidence = rated(reply)
    assert text in reply
    assert confidence is None or 0 <= confidence <= 100
    assert all(question.strip() for question in questions_of(reply, 3))


REFUSALS = [
    "unanswerable",
    "Unanswerable",
    "UNANSWERABLE",
    "unanswerable.",
    "Unanswerable!",
    "unanswerable…",
    "unanswerable\n",
    "  unanswerable  ",
    "\n\nunanswerable\r\n",
    '"unanswerable"',
    '"Unanswerable."',
    '"Unanswerable".',
    "“unanswerable”",
    "„unanswerable“",
    "«unanswerable»",
    "'unanswerable'",
    "`unanswerable`",
    "```\nunanswerable\n```",
    "**unanswerable**",
    "**Unanswerable.**",
    "__unanswerable__",
    "*unanswerable*",
    "# Unanswerable",
    "> unanswerable",
    "> **Unanswerable**",
    "[unanswerable]",
    "(unanswerable)",
    "Answer: unanswerable",
    "**Answer:** Unanswerable.",
    "ANSWER: 'unanswerable'",
    "Unanswerable. The text does not tell.",
    "Unanswerable\n\nThe text does not tell.",
    "“Unanswerable.” The text is silent.",
    "- unanswerable",
    "— unanswerable —",
    "<unanswerable>",
    "{unanswerable}",
    "~~unanswerable~~",
    "「unanswerable」",
    "unanswerable!?",
    "unanswerable！",
    "unanswerable;",
    "unanswerable:",
    "unanswerable,",
    "\u00a0unanswerable\u00a0",
    "\ufeffunanswerable",
    "\u200bunanswerable\u200b",
    "unanswerable\x0c",
]
ANSWERS = [
    "",
    "It sank.",
    "unanswer",
    "Unanswerable questions were his trade.",
    "Unanswerable questions. He loved them.",
    "unanswerables",
    "unanswerable's meaning is clear",
    "unanswerably",
    "Unanswerable-looking, but it is 42.",
    '"Unanswerable" is the word that he used.',
    "**Unanswerable** is what he called it.",
    "The question is unanswerable, he said, and sank.",
    "It sank. unanswerable",
    "not unanswerable",
    "answerable",
    "Answer: It sank; the rest is unanswerable.",
    "Answer: unanswerable questions",
]


@pytest.mark.parametrize("reply", REFUSALS)
def test_refusals(reply):
    assert is_refusal(reply)


@pytest.mark.parametrize("reply", ANSWERS)
def test_answers_are_no_refusals(reply):
    assert not is_refusal(reply)


@pytest.mark.parametrize("reply", REFUSALS)
def test_every_beginning_of_a_refusal_may_become_one(reply):
    assert [reply[:end] for end in range(len(reply) + 1) if not may_be_refusal(reply[:end])] == []


@pytest.mark.parametrize("reply", ["It sank.", "Un voyage.", "Unable to swim, he sank.", "Ahab.", "Answer: It sank."])
def test_an_answer_is_shown_within_a_few_letters(reply):
    beginnings = [end for end in range(len(reply)) if not may_be_refusal(reply[:end])]
    assert beginnings[0] <= max(4, len("Answer: I"))


hostile = st.lists(
    st.one_of(
        st.sampled_from(
            [
                "unanswerable",
                "UNANSWERABLE",
                "unans",
                "werable",
                "answer:",
                "Answer",
                ":",
                "\n",
                " ",
                "**",
                '"',
                ".",
                "#",
            ]
        ),
        st.text(max_size=3),
    ),
    max_size=8,
).map("".join)


@given(hostile)
@example("unanſwerable")
@example("ﬁunanswerable")
@example("unanswerablß")
@example("İanswer: unanswerable")
def test_once_excluded_a_refusal_never_comes_back(reply):
    possible = [may_be_refusal(reply[:end]) for end in range(len(reply) + 1)]
    assert possible == sorted(possible, reverse=True)
    assert possible[0]
    if is_refusal(reply):
        assert all(possible)


@given(
    st.sampled_from(["", "\n", '"', "**", "> ", "Answer: ", "**Answer:** "]),
    st.lists(st.booleans(), min_size=12, max_size=12),
    st.sampled_from(["", ".", '"', "**", ".**", "!", "\n", ". The text does not tell.", "\n\nNothing is said."]),
)
def test_refusals_of_any_case(before, capitals, behind):
    word = "".join(
        letter.upper() if capital else letter for letter, capital in zip("unanswerable", capitals, strict=True)
    )
    reply = before + word + behind
    assert is_refusal(reply)
    assert all(may_be_refusal(reply[:end]) for end in range(len(reply) + 1))


@given(st.text(), st.text(alphabet="abcXYZ0 ", min_size=1).filter(str.strip))
def test_a_word_before_or_behind_makes_it_an_answer(text, word):
    assert not is_refusal(f"{word} unanswerable {text}")
    assert not is_refusal(f"unanswerable {word}")


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("What is it?", "What is it?"),
        ("1. What is it?", "What is it?"),
        ("12) What is it?", "What is it?"),
        ("(3) What is it?", "What is it?"),
        ("4: What is it?", "What is it?"),
        ("- What is it?", "What is it?"),
        ("• What is it?", "What is it?"),
        ("  * What is it?  ", "What is it?"),
        ("Q1: What is it?", "What is it?"),
        ("Question 2: What is it?", "What is it?"),
        ('"What is it?"', "What is it?"),
        ("**What is it?**", "What is it?"),
        ("1. **What is it?**", "What is it?"),
        ("**1.** What is it?", "What is it?"),
        ("**1. What is it?**", "What is it?"),
        ("**Question 1:** What is it?", "What is it?"),
        ("- 1. What is it?", "What is it?"),
        ("1. Question: What is it?", "What is it?"),
        ("a) What is it?", "What is it?"),
        ("何ですか？", "何ですか？"),
        ("1984 was when?", "1984 was when?"),
        ("3.5 million people did what?", "3.5 million people did what?"),
        ("1,000 men did what?", "1,000 men did what?"),
        ("10:30 is when which train leaves?", "10:30 is when which train leaves?"),
        ("Quebec is where?", "Quebec is where?"),
    ],
)
def test_one_question(line, question):
    assert questions_of(line, 4) == (question,)


def test_questions_stand_a_line_each_without_repetitions():
    reply = "Here are four:\n\n1. Who?\n2. What?\n\n3. WHO?\n4. Where?\n\nI hope that this helps."
    assert questions_of(reply, 4) == ("Who?", "What?", "Where?")
    assert questions_of(reply, 2) == ("Who?", "What?")


def test_without_question_marks_every_line_counts():
    assert questions_of("Some questions:\nName the ship\nName the captain.", 4) == (
        "Name the ship",
        "Name the captain.",
    )


@pytest.mark.parametrize("reply", ["", "\n \n", "---\n***", "Here are some:", "x" * 1_001 + "?", "?\n!?\n…"])
def test_no_questions(reply):
    assert questions_of(reply, 4) == ()


def test_objects_cannot_be_read():
    with pytest.raises(OptionError, match=r"condense reads the text.*structured output"):
        text_of(Completion("{}", parsed={}), "condense")
    assert text_of(Completion("x"), "condense") == "x"
