import pickle

import pytest

from oprag import Position, PositionKind
from oprag.chunk import UNKNOWN_POSITION


def test_the_kinds_stand_best_first():
    assert [kind.name for kind in sorted(PositionKind)] == [
        "KEY",
        "STAMPED",
        "PAGE_OFFSET",
        "OFFSET",
        "LINKS",
        "PAGE",
        "STORE",
        "NONE",
    ]
    assert [kind.value for kind in sorted(PositionKind)] == list(range(8))


@pytest.mark.parametrize("kind", PositionKind)
def test_a_position_is_known_on_every_kind_but_the_last(kind):
    assert Position((1,), kind).known == (kind is not PositionKind.NONE)
    assert not UNKNOWN_POSITION.known


def test_a_position_is_a_value():
    assert Position((1,), PositionKind.OFFSET, "start_index") == pickle.loads(
        pickle.dumps(Position((1,), PositionKind.OFFSET, "start_index"))
    )
    assert (
        len(
            {
                Position((1,), PositionKind.OFFSET),
                Position((1,), PositionKind.OFFSET),
                Position((2,), PositionKind.OFFSET),
            }
        )
        == 2
    )
