"""The process that has the results file, and grants every call."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from oprag.compare.db.records import AnswerRecord, Reply, Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.running.ledger import Ledger
from oprag.compare.spec.money import Limits
from oprag.methods.model_calls import Completion

__all__ = ["Begun", "Desk", "News", "Place", "Refusal", "Turn"]

Place = tuple[str, str]
"""The keys of a cell and of a question."""


class Turn(NamedTuple):
    """A worker at a share; another worker takes the next turn when this one has died.

    Attributes:
        share: The number of the share.
        number: Which turn it is, from 1.
    """

    share: int
    number: int


class Begun(NamedTuple):
    """What a worker is told when it begins.

    Attributes:
        turn: Its turn.
        done: What workers before it have done of the share.
    """

    turn: Turn
    done: frozenset[Place]


class Refusal(NamedTuple):
    """Why a call must not be made.

    Attributes:
        reason: Why.
        final: Whether it will be the same later; else other workers' calls are on their way, which may take less than
            they might.
    """

    reason: str
    final: bool


class News(NamedTuple):
    """What happened since the last time.

    Attributes:
        answers: The answers.
        spent: What all runs have spent.
        running: How many calls are on their way.
    """

    answers: Sequence[AnswerRecord]
    spent: Spent
    running: int


class Desk:
    """An actor of Ray; everything is asked of it one after the other.

    Args:
        path: The results file.
        run: The number of the run.
        limits: The most that may be spent.
        spent: What was spent before.
    """

    def __init__(self, path: str, run: int, limits: Limits, spent: Spent) -> None:
        self._file = ResultsFile(path, run)
        self._meter = Ledger(limits, spent)
        self._new: list[AnswerRecord] = []
        self._turns: dict[int, Turn] = {}
        self._reserved: dict[int, Counter[Spent]] = {}
        self._done: dict[int, set[Place]] = {}
        self._claims: dict[str, Turn] = {}
        self._stopped: str | None = None

    def process(self) -> int:
        """The number of the process."""
        return os.getpid()

    def begin(self, share: int) -> Begun:
        """A worker begins with a share; the one that had it before, if any, is gone with the calls it had begun."""
        before = self._turns.get(share)
        self.abandon(share)
        turn = self._turns[share] = Turn(share, 1 if before is None else before.number + 1)
        return Begun(turn, frozenset(self._done.setdefault(share, set())))

    def abandon(self, share: int) -> None:
        """Nobody is at this share any more: what was reserved for it is free, and the calls that it had begun."""
        for call, number in self._reserved.get(share, Counter()).items():
            for _ in range(number):
                self._meter.settle(call, Spent())
        self._reserved[share] = Counter()
        self._claims = {key: turn for key, turn in self._claims.items() if turn.share != share}

    def claim(self, turn: Turn, key: str) -> Completion | bool:
        """Whether a worker is to make the call with this key: another one may be at it, or have the reply already.

        Returns:
            The reply if it is there; else True for the worker that makes the call, and False for one that waits.
        """
        (reply,) = self._file.get(Reply, [key])
        return reply.completion if reply is not None else self._claims.setdefault(key, turn) == turn

    def release(self, turn: Turn, key: str) -> None:
        """A call is over, and its reply is kept if it has one."""
        if self._claims.get(key) == turn:
            del self._claims[key]

    def do(self, name: str, *arguments: Any) -> Any:
        """What a method of the file gives."""
        return getattr(self._file, name)(*arguments)

    def reserve(self, turn: Turn, call: Spent) -> Refusal | None:
        """Why a call must not be made; None where it may, and then it is counted."""
        if self._turns[turn.share] != turn:
            return Refusal("another worker went on with these questions", final=True)
        if self._stopped is not None:
            return Refusal(self._stopped, final=True)
        reason = self._meter.refusal(call)
        if reason is not None:
            return Refusal(reason, final=not self._running)
        self._meter.reserve(call)
        self._reserved[turn.share][call] += 1
        return None

    def settle(self, turn: Turn, reserved: Spent, spent: Spent) -> None:
        """A call is over."""
        # What was reserved by a worker that was taken for dead is settled already.
        mine = self._turns[turn.share] == turn
        if mine:
            self._reserved[turn.share] -= Counter([reserved])
        self._meter.settle(reserved if mine else Spent(), spent)

    def keep_answers(self, turn: Turn, records: Sequence[AnswerRecord]) -> None:
        """Write answers."""
        done = self._done[turn.share]
        new = [record for record in records if (record.cell, record.question) not in done]
        self._file.put_answers(new)
        self._new += new
        done |= {(record.cell, record.question) for record in new}

    def news(self) -> News:
        """What happened since the last time."""
        new, self._new = self._new, []
        return News(new, self._meter.spent, self._running)

    def stop(self, reason: str) -> None:
        """Grant no more calls."""
        self._stopped = self._stopped or reason

    def stopped(self) -> str | None:
        """Why no more calls are granted; None while they are."""
        return self._stopped

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @property
    def _running(self) -> int:
        return sum(calls.total() for calls in self._reserved.values())
