import pytest

from oprag.errors import EmbeddingError
from tests.core.methods.helpers import World, parts

VARIANTS = [f"What is {number}?" for number in range(6)]


def test_vectors_that_are_none_are_refused():
    world = World(parts(1), variants=VARIANTS[0], embed=lambda text: [float("nan")])
    with pytest.raises(EmbeddingError, match="finite"):
        world.answer(method="reciprocal", variants=1)
