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


@pytest.mark.parametrize("asked", [1, 3, 4, 6])
def test_v_plus_two_calls_with_stuff_inside(asked):
    world, answer = ask(*["near"] * asked)
    assert world.steps == ["variants", *["answer"] * asked, "aggregate"]
    assert len(answer.calls) == asked + 2
    assert world.of(Embed) == [Embed((QUESTION,), ("near",) * asked)]
    assert [request.final for request in world.of(Generate)] == [False, False, True]


def test_vectors_that_are_none_are_refused():
    world = World(parts(1), variants=VARIANTS[0], embed=lambda text: [float("nan")])
    with pytest.raises(EmbeddingError, match="finite"):
        world.answer(method="reciprocal", variants=1)
