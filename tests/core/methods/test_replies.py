import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oprag.methods import Completion
from oprag.methods.replies import is_refusal, may_be_refusal, without_reasoning
from oprag.methods.run import EMPTY
from tests.core.methods.helpers import World, parts


def rated(reply: str | Completion) -> tuple[str, float | None]:
    """The answer and the confidence that map_rerank reads in a reply."""
    (answer,) = World(parts(1), rerank=reply).answer(method="map_rerank").answers
    return answer.text, answer.confidence


def questions(reply: str | Completion, limit: int = 4) -> tuple[str, ...]:
    """The questions that step_down reads in a reply."""
    answer = World(parts(1), variants=reply).answer(method="step_down", variants=limit)
    if "the model generated no variants, so the question itself was used" in answer.notes:
        return ()
    return tuple(part.question or "" for part in answer.answers)


@pytest.mark.parametrize(
    ("said", "confidence"),
    [
        ("85", 85),
        ("0", 0),
        ("85,5", 85.5),
        ("85 %", 85),
        ("85 percent", 85),
        ("8,5 / 10", 85),
        ("4/5", 80),
        ("17 out of 20", 85),
        ("**85**", 85),
        ("<85>", 85),
        ("**8**/10", 80),
        ("85<|im_end|>", 85),
        ("90 (3 of 4 points, could name the part number)", 90),
        ("90 because pages 1-10 agree", 90),
        ("85 - it was built in 1912", 85),
        ("On a scale of 0 to 100, 85", 85),
        ("9 (on a scale of 1 to 10)", 90),
        ("0.9", 90),
        ("1", 1),
        ("2.0", 2),
        ("0.5%", 0.5),
        ("high (85)", 85),
        ("85 (on a scale from 0 to 100)", 85),
        ("high", None),
        ("", None),
        ("150", None),
        ("-5", None),
        ("−5", None),
        ("11/10", None),
        ("7/0", None),
        ("9" * 5_000, None),
        ("1,000", None),
        ("0-100", None),
        ("<number>", None),
    ],
)
def test_confidences(said, confidence):
    text, read = rated(f"It sank.\nConfidence: {said}")
    assert text == "It sank."
    assert read == pytest.approx(confidence, abs=1e-9)


@pytest.mark.parametrize(
    "reply",
    [
        "Paris\nConfidence: 85",
        "Paris\n\n**Confidence:** 85",
        "Paris\n- Confidence: 85%",
        "Paris\nCONFIDENCE = 85",
        "Paris\nConfidence - 85",
        "Paris\nConfidence level: 85",
        "Paris\nConfidence (0-100): 85",
        "Paris\nConfidence：85％",
        "Paris\nScore: 85",
        "Paris\nScore:\n85",
        "Paris\nScore: 8.5/10",
        "Paris\nScore: High (85)",
        "Paris\nScore: 85 (the passage answers it fully)",
        "Paris\nScore: 85 - The passage says so.\nReason: it does.",
        "Paris\nScore: 85<|im_end|>",
        "Paris\nScore (0-100): 85",
        "Paris\nScore (1-10): 8.5",
        "Paris\nHelpful Score: 85",
        "Paris\nFinal Score: 85/100",
        "Paris\n**Score: 85**",
        "Paris\n> *Score*: 85",
        "Paris\n- **Score:** 85\n- **Reason:** it says so.",
        "Paris\n\n### Score\n85",
        "Paris Score: 85",
        "Paris. Confidence: 85 (the passage says so)",
        "Score: 85\nAnswer: Paris",
        "Score: 85 (the passage says so)\nHelpful Answer: Paris",
        "**Score:** 85 **Answer:** Paris",
        "Question: Where?\nHelpful Answer: Paris\nScore: 85",
        "1. Answer: Paris\n2. Score: 85",
        "**Answer: Paris**\n**Score: 85**",
        "**Answer:** Paris\nConfidence: 85",
        "Confidence: 85\nAnswer: Paris",
        "Paris\nConfidence: 85\nThe passage says so.",
        "Paris Confidence: 85",
        "Paris (confidence: 85%)",
        "Paris, confidence: 85",
        "Paris — confidence = 8.5/10",
        "Paris (confidence: 85, 0-100)",
    ],
)
def test_where_models_put_the_confidence(reply):
    text, confidence = rated(reply)
    assert (text.rstrip("."), confidence) == ("Paris", 85)


@pytest.mark.parametrize(
    "reply",
    [
        "Paris, with 85 inhabitants",
        "It was said with confidence: all of them would come.",
        "Confidence in the crew was restored by the captain.",
        "Score: Ajax won, in the end.",
        "He lost confidence. 85 men left.",
        "It sank.\nConfidence in the crew was restored by the captain.",
        "They won.\nScore: 3 - 2 for England",
        "They scored 85 points.",
        "confidence",
        "Confidence: high",
    ],
)
def test_an_answer_without_a_confidence_stays_whole(reply):
    assert rated(reply) == (reply, None)


@pytest.mark.parametrize(
    "reply",
    [
        "A." + "\n" * 16_000 + "x",
        "A. confidence:" + " " * 1_000 + "x",
        "A.\nconfidence:" + " " * 20_000 + "x",
        "confidence: " * 2_000,
        "1" * 50_000,
        "A.\nConfidence: " + "1 " * 10_000,
        "<think>" * 10_000,
        "Score: " * 10_000,
        "Score:" + "\n-" * 20_000,
        "Score (" * 10_000,
        "Confidence: " + "0-1 scale 0-" * 5_000,
        "Confidence: 1 " + "final answer " * 5_000,
        "-" * 50_000,
    ],
    ids=range(13),
)
def test_a_model_that_runs_wild_takes_no_time(reply):
    started = time.process_time()
    rated(reply)
    questions(reply)
    is_refusal(reply)
    may_be_refusal(reply)
    # Milliseconds; a pattern that is quadratic takes minutes.
    assert time.process_time() - started < 20


@given(st.text(), st.integers(0, 100))
def test_whatever_is_answered_the_confidence_behind_it_is_read(text, confidence):
    assert rated(f"{text}\nConfidence: {confidence}")[1] == confidence


@given(st.text())
@example("Confidence: 5/" + "9" * 5_000)
def test_no_reply_is_too_strange(reply):
    text, confidence = rated(reply)
    assert text in reply
    assert confidence is None or 0 <= confidence <= 100
    assert all(question.strip() for question in questions(reply, 3))


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("What is it?", "What is it?"),
        ("1. What is it?", "What is it?"),
        ("(3) What is it?", "What is it?"),
        ("- What is it?", "What is it?"),
        ("  * What is it?  ", "What is it?"),
        ("Q1: What is it?", "What is it?"),
        ('"What is it?"', "What is it?"),
        ("**What is it?**", "What is it?"),
        ("**1.** What is it?", "What is it?"),
        ("**Question 1:** What is it?", "What is it?"),
        ("1. Question: What is it?", "What is it?"),
        ("a) What is it?", "What is it?"),
        ("何ですか？", "何ですか？"),
        ("1984 was when?", "1984 was when?"),
        ("3.5 million people did what?", "3.5 million people did what?"),
        ("10:30 is when which train leaves?", "10:30 is when which train leaves?"),
        ("Quebec is where?", "Quebec is where?"),
    ],
)
def test_one_question(line, question):
    assert questions(line) == (question,)


@pytest.mark.parametrize(
    ("reply", "answer", "confidence"),
    [
        ("Confidence: 90\nScore: 3-2 for England", "Score: 3-2 for England", 90),
        ("The final score: 21.", "The final score: 21.", None),
        ("They won.\nScore: 3-2", "They won.\nScore: 3-2", None),
        ("They won.\nScore: 3-2\nScore: 85", "They won.\nScore: 3-2", 85),
        ("They won.\nScore: 150", "They won.", None),
        ("They won.\nScore: high", "They won.", None),
        ("They won.\nScore:", "They won.", None),
        ("**Paris**\n**Score:** 85", "**Paris**", 85),
        ("Answer: -5 degrees\nScore: 85", "-5 degrees", 85),
        ("<think>Score: 20</think>Paris\nScore: 85", "Paris", 85),
        ("Paris\nConfidence:\n85", "Paris", 85),
        ("Paris (confidence 85)", "Paris", 85),
        ('{"answer": "Paris", "confidence": 85}', "Paris", 85),
        ('```json\n{"Answer": "Paris", "Confidence": "8.5/10"}\n```', "Paris", 85),
        ('{"answer": "Paris", "confidence": "high"}', "Paris", None),
        ('{"answer": "Paris", "score": 85}', "Paris", 85),
        ('{"city": "Paris"}', '{"city": "Paris"}', None),
    ],
)
def test_other_ways_to_say_it(reply, answer, confidence):
    assert rated(reply) == (answer, confidence)


@pytest.mark.parametrize(
    "reply",
    [
        '["What is A?", "What is B?"]',
        '```json\n["What is A?",\n "What is B?"]\n```',
        "1. **What** is A?\n2. What is __B__?",
        "What is A? (see part 1)\nWhat is B?",
    ],
)
def test_other_ways_to_list_questions(reply):
    first, second = questions(reply)
    assert first.startswith("What is A?")
    assert second == "What is B?"


def test_what_was_thought_aloud_is_not_read():
    assert questions("<think>\nShould I ask about cats?\n</think>\nWhat is A?") == ("What is A?",)
    assert rated("A <think> is a tag.") == ("A <think> is a tag.", None)


THOUGHT = "<think>\nHm, a cat?\n</think>\n"


@pytest.mark.parametrize("thought", [THOUGHT, "Hm, a cat?</think>"])
@pytest.mark.parametrize("method", ["map_reduce", "refine", "step_down", "reciprocal"])
def test_reasoning_goes_into_no_other_prompt(method, thought):
    said = f"{thought}Yes."
    world = World(parts(3), variants=f"{thought}What?\nWho?", answer=said, map=said, collapse=said, refine=said)
    world.answer(method=method, collapse_tokens=1)
    assert any("Yes." in prompt.text for prompt in world.prompts)
    assert not any("a cat" in prompt.text for prompt in world.prompts)


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("<think>a</think>It ends with </think>.", "It ends with </think>."),
        ("a <b></THINKING>c", "c"),
        ("No <think>tag</think>.", "No <think>tag</think>."),
        ("1 < 2", "1 < 2"),
    ],
)
def test_what_is_reasoning(reply, answer):
    assert without_reasoning(reply) == answer


def test_a_reply_of_reasoning_alone_is_empty():
    answer = World(parts(1), answer="<think>Hm.").answer(method="stuff")
    assert EMPTY in answer.notes
    assert World(parts(2), answer="A draft.", refine="<think>Hm.").answer(method="refine").text == "A draft."
    assert rated("Score: 5? Hm.</think>Paris\nConfidence: 85") == ("Paris", 85)
