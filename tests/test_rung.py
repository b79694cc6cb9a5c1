import pickle

import pytest

from oprag import Position, Rung
from oprag.rung import NOWHERE


def test_the_rungs_stand_best_first():
    assert [rung.name for rung in sorted(Rung)] == [
        "KEY",
        "STAMPED",
        "PAGE_OFFSET",
        "OFFSET",
        "CHAIN",
        "COARSE",
        "NONE",
    ]
    assert [rung.value for rung in sorted(Rung)] == list(range(7))


@pytest.mark.parametrize("rung", Rung)
def test_a_position_is_known_on_every_rung_but_the_last(rung):
    assert Position((1,), rung).known == (rung is not Rung.NONE)
    assert not NOWHERE.known


def test_a_position_is_a_value():
    assert Position((1,), Rung.OFFSET, "start_index") == pickle.loads(
        pickle.dumps(Position((1,), Rung.OFFSET, "start_index"))
    )
    assert len({Position((1,), Rung.OFFSET), Position((1,), Rung.OFFSET), Position((2,), Rung.OFFSET)}) == 2
