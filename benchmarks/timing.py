"""Timing several candidates side by side."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TypeVar

__all__ = ["Timing", "beyond", "interleave", "interleave_async", "ms", "times"]


@dataclass(frozen=True)
class Timing:
    """The repetitions of one candidate, in seconds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median repetition."""
        return median(self.seconds)

    @property
    def best(self) -> float:
        """The fastest repetition."""
        return min(self.seconds)

    def divided(self, by: int) -> Timing:
        """The time per item, for items that were processed together."""
        return Timing(tuple(seconds / by for seconds in self.seconds))

    def __str__(self) -> str:
        return ms(self.median)


def interleave(
    cases: Mapping[str, Callable[[], object]], rounds: int, *, in_a_row: int = 1, warm_up: int = 1
) -> dict[str, Timing]:
    """Run the candidates in turn, so that other load on the machine affects all of them.

    Every other turn is in reverse order, so that no candidate always runs after the same one.

    Args:
        cases: The candidates by name.
        rounds: Number of turns of each candidate.
        in_a_row: Repetitions per turn. With more than one, most find the processor's caches as this candidate left
            them, and not as another did.
        warm_up: Number of turns before, which are not counted.
    """
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    with _no_collection():
        for number in range(warm_up + rounds):
            for name, case in _in_turn(cases, number):
                for _ in range(in_a_row):
                    start = perf_counter()
                    case()
                    seconds[name].append(perf_counter() - start)
    return _counted(seconds, warm_up * in_a_row)


async def interleave_async(
    cases: Mapping[str, Callable[[], Awaitable[object]]], rounds: int, *, in_a_row: int = 1, warm_up: int = 1
) -> dict[str, Timing]:
    """As `interleave`, inside one running event loop."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    with _no_collection():
        for number in range(warm_up + rounds):
            for name, case in _in_turn(cases, number):
                for _ in range(in_a_row):
                    start = perf_counter()
                    await case()
                    seconds[name].append(perf_counter() - start)
    return _counted(seconds, warm_up * in_a_row)


def beyond(ours: Timing, base: Timing) -> Timing:
    """The time of one candidate in addition to the best time of another."""
    return Timing(tuple(seconds - base.best for seconds in ours.seconds))


def times(ours: Timing, theirs: Timing) -> float:
    """The median ratio of two candidates, turn by turn, because other load on the machine affects both in a turn."""
    return median(one / other for one, other in zip(ours.seconds, theirs.seconds, strict=True))


def ms(seconds: float) -> str:
    """Milliseconds with about three significant digits."""
    value = seconds * 1000
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"


Case = TypeVar("Case")


def _in_turn(cases: Mapping[str, Case], number: int) -> list[tuple[str, Case]]:
    ordered = list(cases.items())
    return ordered[::-1] if number % 2 else ordered


def _counted(seconds: Mapping[str, Sequence[float]], warm_up: int) -> dict[str, Timing]:
    return {name: Timing(tuple(values[warm_up:])) for name, values in seconds.items()}


@contextmanager
def _no_collection() -> Iterator[None]:
    """Turn the garbage collector off, which would charge one candidate for the objects of another."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
