import pytest

from oprag.errors import ModelWarning, OptionError
from oprag.methods import Completion, Embed
from tests.core.methods.helpers import World, parts

UNREADABLE = "no confidence could be parsed for 1 of 2 answers, which cannot win"
ALL_UNREADABLE = "no confidence could be parsed, so this is the first answer in the order of the context"


def rate(*confidences: object) -> list[str]:
    return [f"Answer {number}.\nConfidence: {confidence}" for number, confidence in enumerate(confidences)]


def ask(*replies: str | Completion | Exception, **options):
    world = World(parts(len(replies)), rerank=list(replies))
    return world, world.answer(method="map_rerank", **options)


@pytest.mark.parametrize(
    ("replies", "chosen", "confidences", "notes"),
    [
        (rate(10, 90, 80), 1, [10, 90, 80], ()),
        # Ties go by the order of the context.
        (rate(50, 70, 70), 1, [50, 70, 70], ()),
        (rate(0, 0), 0, [0, 0], ()),
        (rate("80", "8.5/10", "84 %"), 1, [80, 85, 84], ()),
        # A confidence that cannot be read costs its passage alone.
        *[(rate(unreadable, 1), 1, [None, 1], (UNREADABLE,)) for unreadable in ("high", "150", "-5", "7/0", "")],
        (["", *rate(1)], 1, [None, 1], ()),
        (["Confidence: 100", *rate(3)], 1, [100, 3], ()),
        ([" \n", "Second.", "Third."], 1, [None, None, None], (ALL_UNREADABLE,)),
        (["", "  ", "Confidence: 80"], None, [None, None, 80], ("no passage gave an answer",)),
    ],
    ids=range(13),
)
def test_the_most_confident_answer_is_the_result(replies, chosen, confidences, notes):
    _, answer = ask(*replies)
    assert [one.chosen for one in answer.answers] == [number == chosen for number in range(len(replies))]
    assert answer.text == ("" if chosen is None else answer.answers[chosen].text)
    assert [one.confidence for one in answer.answers] == confidences
    assert answer.notes[: len(notes)] == notes
    assert len(answer.notes) == len(notes) or chosen is None


def test_failed_calls_are_skipped():
    with pytest.warns(ModelWarning, match="2 of 3"):
        _, answer = ask(OSError("a"), *rate(3), OSError("b"), on_error="skip")
    assert answer.text == "Answer 0."
    assert len(answer.answers) == 3


def test_the_cosine_ranks_in_place_of_the_confidence():
    vectors = {"near": [-1.0, 0.1], "far": [-1.0, 0.0], "What?": [1.0, 0.0]}
    world = World(
        parts(4), rerank=["far\nConfidence: 99", "", "near", "near\nConfidence: 5"], embed=vectors.__getitem__
    )
    answer = world.answer("What?", method="map_rerank", rank_by="cosine")
    assert world.of(Embed) == [Embed(("What?",), ("far", "near", "near"))]
    assert (answer.text, answer.notes) == ("near", ())
    assert [one.chosen for one in answer.answers] == [False, False, True, False]
    assert [one.cosine is None for one in answer.answers] == [False, True, False, False]
    assert answer.answers[0].cosine == -1


def test_a_model_that_gives_objects_is_refused():
    with pytest.raises(OptionError, match=r"map_rerank parses the model's text.*structured output"):
        ask(Completion("{}", parsed={}))
