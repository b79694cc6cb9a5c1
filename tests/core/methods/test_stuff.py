import pytest

from tests.core.methods.helpers import World, numbers, parts


@pytest.mark.parametrize("count", [1, 2, 16])
def test_one_call_over_the_whole_context_in_its_order(count):
    world = World(parts(count), answer="All of it.")
    answer = world.answer()
    assert world.steps == ["answer"]
    assert numbers(world.texts("answer")[0]) == list(range(count))
    assert answer.text == "All of it."
    assert numbers(" ".join(passage.text for passage in answer.passages)) == list(range(count))
