"""Making calls of models where other workers may come to make the same ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from oprag.compare.on_ray.asking import PATIENCE, ask_desk
from oprag.compare.on_ray.desk import Turn
from oprag.compare.running.model_caller import Asked, Call, Made, ModelCaller
from oprag.methods.model_calls import Completion

__all__ = ["ClaimingCaller"]

_AGAIN = 0.1  # seconds


class ClaimingCaller(ModelCaller):
    """A caller that waits for the reply where another worker is at the same call.

    Args:
        turn: The turn of this worker.
        desk: The handle of the desk.
        given: What `ModelCaller` takes.
        options: The same.
    """

    def __init__(self, turn: Turn, desk: Any, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._turn = turn
        self._desk = desk

    def _asked(self, call: Call) -> Asked:
        until = time.monotonic() + PATIENCE
        while not isinstance(claimed := ask_desk(self._desk, "claim", self._turn, call.key), Completion):
            # Calls that fail are made again by those who wait, as they are by another start.
            if claimed or time.monotonic() > until:
                try:
                    return super()._asked(call)
                except BaseException:
                    self._release(call)
                    raise
            time.sleep(_AGAIN)
        return Asked(call, claimed, 0.0, known=True)

    def _kept(self, asked: Sequence[Asked]) -> list[Made]:
        try:
            return super()._kept(asked)
        finally:
            for one in asked:
                if not one.known:
                    self._release(one.call)

    def _release(self, call: Call) -> None:
        self._desk.release.remote(self._turn, call.key)
