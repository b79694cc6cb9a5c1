import pytest

from oprag.errors import EmbeddingError
from oprag.methods import Embed, Generate
from tests.core.methods.helpers import QUESTION, World, parts

VARIANTS = [f"What is {number}?" for number in range(6)]
VECTORS = {QUESTION: [1.0, 0.0], "near": [1.0, 0.2], "middle": [1.0, 1.0], "far": [0.1, 1.0], "behind": [-1.0, 0.0]}


def ask(*answers: str, **options):
    world = World(
        parts(3), variants="\n".join(VARIANTS[: len(answers)]), answer=list(answers), embed=VECTORS.__getitem__
    )
    return world, world.answer(method="reciprocal", variants=len(answers), **options)


def aggregated(world: World) -> list[str]:
    (text,) = world.texts("aggregate")
    return [line.removeprefix("Answer: ") for line in text.splitlines() if line.startswith("Answer: ")]


@pytest.mark.parametrize("asked", [1, 3, 4, 6])
def test_v_plus_two_calls_with_stuff_inside(asked):
    world, answer = ask(*["near"] * asked)
    assert world.steps == ["variants", *["answer"] * asked, "aggregate"]
    assert len(answer.calls) == asked + 2
    assert world.of(Embed) == [Embed((QUESTION,), ("near",) * asked)]
    assert [request.final for request in world.of(Generate)] == [False, False, True]


def test_the_best_answers_stand_first_and_those_under_the_threshold_are_left_out():
    world, answer = ask("middle", "far", "near", "behind")
    assert aggregated(world) == ["near", "middle"]
    assert [one.chosen for one in answer.answers] == [True, False, True, False]
    assert [one.question for one in answer.answers] == VARIANTS[:4]
    assert [one.cosine for one in answer.answers] == pytest.approx([0.7071, 0.0995, 0.9806, -1], abs=1e-4)


def test_ties_keep_the_sequence_of_the_questions():
    world, _ = ask("near", "near", "middle", "near")
    assert aggregated(world) == ["near", "near", "near", "middle"]
    text = world.texts("aggregate")[0]
    assert [number for number in range(4) if f"What is {number}?" in text] == [0, 1, 2, 3]
    assert text.index("What is 0?") < text.index("What is 1?") < text.index("What is 3?") < text.index("What is 2?")


@pytest.mark.parametrize(("threshold", "left"), [(-1, 4), (0, 3), (0.9, 1)])
def test_the_threshold(threshold, left):
    world, _ = ask("middle", "far", "near", "behind", answer_threshold=threshold)
    assert len(aggregated(world)) == left


def test_where_none_remains_the_nearest_is_used_and_a_note_says_so():
    world, answer = ask("behind", "far")
    assert aggregated(world) == ["far"]
    assert [one.chosen for one in answer.answers] == [False, True]
    assert any("answer_threshold=0.5" in note for note in answer.notes)


def test_an_empty_answer_is_neither_embedded_nor_combined():
    world, answer = ask("near", " ", "middle")
    assert world.of(Embed) == [Embed((QUESTION,), ("near", "middle"))]
    assert len(answer.answers) == 2


def test_vectors_that_are_none_are_refused():
    world = World(parts(1), variants=VARIANTS[0], embed=lambda text: [float("nan")])
    with pytest.raises(EmbeddingError, match="finite"):
        world.answer(method="reciprocal", variants=1)
