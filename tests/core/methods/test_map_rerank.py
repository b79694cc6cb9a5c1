import pytest

from oprag.errors import ModelWarning, OptionError
from oprag.methods import Completion, Embed, Generate
from tests.core.methods.helpers import World, numbers, parts


def rate(*confidences: object) -> list[str]:
    return [f"Answer {number}.\nConfidence: {confidence}" for number, confidence in enumerate(confidences)]


def ask(*replies: str | Completion | Exception, **options):
    world = World(parts(len(replies)), rerank=list(replies))
    return world, world.answer(method="map_rerank", **options)


@pytest.mark.parametrize("count", [1, 2, 5, 16])
def test_one_call_a_passage_at_once(count):
    world, answer = ask(*rate(*range(count)))
    assert world.steps == ["rerank"] * count
    assert [numbers(text) for text in world.texts("rerank")] == [[number] for number in range(count)]
    assert len(world.of(Generate)) == 1
    assert not world.of(Generate)[0].final
    assert len(answer.calls) == count


def test_the_most_confident_answer_is_the_result():
    _, answer = ask(*rate(10, 90, 80))
    assert answer.text == "Answer 1."
    assert [one.confidence for one in answer.answers] == [10, 90, 80]
    assert [one.chosen for one in answer.answers] == [False, True, False]
    assert [numbers(one.passage.text) for one in answer.answers if one.passage] == [[0], [1], [2]]
    assert answer.notes == ()


def test_ties_go_by_the_order_of_the_context():
    assert ask(*rate(50, 70, 70))[1].text == "Answer 1."
    assert ask(*rate(0, 0))[1].text == "Answer 0."


@pytest.mark.parametrize("unreadable", ["high", "150", "-5", "7/0", ""])
def test_an_unreadable_confidence_costs_its_passage_alone(unreadable):
    _, answer = ask(*rate(unreadable, 1))
    assert answer.text == "Answer 1."
    assert answer.answers[0].text == "Answer 0."
    assert answer.answers[0].confidence is None
    assert answer.notes == ("no confidence could be parsed for 1 of 2 answers, which cannot win",)


def test_answers_without_a_confidence_are_not_noted_where_it_does_not_rank_them():
    assert ask("First.", *rate(1), rank_by="cosine")[1].notes == ()


def test_an_empty_reply_is_no_answer_without_a_confidence():
    assert ask("", *rate(1))[1].notes == ()


def test_where_none_can_be_read_the_first_answer_stands_and_a_note_says_so():
    _, answer = ask(" \n", "Second.", "Third.")
    assert answer.text == "Second."
    assert [one.chosen for one in answer.answers] == [False, True, False]
    assert ["no confidence could be parsed" in note for note in answer.notes] == [True]


def test_no_answer_at_all():
    _, answer = ask("", "  ", "Confidence: 80")
    assert answer.text == ""
    assert "no passage gave an answer" in answer.notes
    assert not any(one.chosen for one in answer.answers)


def test_failed_calls_are_skipped():
    with pytest.warns(ModelWarning, match="2 of 3"):
        _, answer = ask(OSError("a"), *rate(3), OSError("b"), on_error="skip")
    assert answer.text == "Answer 0."
    assert len(answer.answers) == 3


def test_the_cosine_ranks_in_place_of_the_confidence():
    vectors = {"near": [1.0, 0.1], "far": [0.0, 1.0], "What?": [1.0, 0.0]}
    world = World(
        parts(4), rerank=["far\nConfidence: 99", "", "near", "near\nConfidence: 5"], embed=vectors.__getitem__
    )
    answer = world.answer("What?", method="map_rerank", rank_by="cosine")
    assert world.of(Embed) == [Embed(("What?",), ("far", "near", "near"))]
    assert answer.text == "near"
    assert [one.chosen for one in answer.answers] == [False, False, True, False]
    assert [one.cosine is None for one in answer.answers] == [False, True, False, False]
    assert answer.answers[0].cosine == 0


def test_a_model_that_gives_objects_is_refused():
    with pytest.raises(OptionError, match="map_rerank parses the model's text"):
        ask(Completion("{}", parsed={}))


def test_a_marker_leads_to_the_passage_of_the_chosen_answer():
    world = World(parts(3), rerank=["No [1].\nConfidence: 1", "Yes [2].\nConfidence: 9", "No [3].\nConfidence: 2"])
    answer = world.answer(method="map_rerank", cite=True)
    assert [numbers(citation.passage.text) for citation in answer.citations] == [[1]]
