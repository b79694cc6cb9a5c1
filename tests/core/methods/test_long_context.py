import pytest

from oprag.errors import SourceReadError
from tests.core.methods.helpers import World, parts

WHOLE = {"voyage": "The whole of the voyage.", "other": "The other whole.", "unread": "Never read."}


def test_only_retrieved_sources_are_read_in_the_order_of_the_context():
    read: list[str] = []

    def reader(name: str) -> str:
        read.append(name)
        return WHOLE[name]

    found = [*parts(2, "other"), *[chunk for chunk in parts(4) if chunk.rank > 1]]
    world = World(found, sources=reader)
    answer = world.answer(method="long_context")
    assert read == ["other", "voyage"]
    assert "The other whole.\n\nThe whole of the voyage." in world.texts("answer")[0]
    assert [passage.source for passage in answer.passages] == ["other", "voyage"]


def test_a_source_that_is_not_there():
    with pytest.raises(SourceReadError, match="'lost'"):
        World(parts(1, "lost"), sources=WHOLE).answer(method="long_context")
