import pytest

from oprag.errors import ModelWarning
from oprag.methods import Generate
from oprag.methods.replies import may_be_refusal
from tests.core.methods.helpers import World, parts

WHOLE = {"voyage": "The whole of the voyage."}


def test_what_may_be_a_refusal_is_held_back():
    world = World(parts(1), sources=WHOLE, route="unanswerable")
    world.answer(method="self_route")
    assert [(request.final, request.hold) for request in world.of(Generate)] == [(True, may_be_refusal), (True, None)]


def test_a_failed_first_call_that_is_skipped_takes_the_second_way():
    world = World(parts(1), sources=WHOLE, route=OSError("no"), answer="It sank.")
    with pytest.warns(ModelWarning, match="'route'"):
        answer = world.answer(method="self_route", on_error="skip")
    assert (answer.text, answer.route) == ("It sank.", "long_context")
