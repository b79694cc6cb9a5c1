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
        """What to expect."""
        return median(self.seconds)

    @property
    def best(self) -> float:
        """The least disturbed repetition."""
        return min(self.seconds)

    def divided(self, by: int) -> Timing:
        """The time of each of several things that were done together."""
        return Timing(tuple(seconds / by for seconds in self.seconds))

    def __str__(self) -> str:
        return f"{ms(self.median)} ({ms(self.best)})"


def interleave(
    cases: Mapping[str, Callable[[], object]], rounds: int, *, in_a_row: int = 1, warm_up: int = 1
) -> dict[str, Timing]:
    """Run the candidates in turn, so that whatever disturbs the machine disturbs them all.

    Every other time the last one begins: none always runs behind the same one.

    Args:
        cases: What to time, by name.
        rounds: Turns of each candidate that count.
        in_a_row: Repetitions in a turn; with more than one, most of them find the processor's caches as they left them,
            and not as another candidate did.
        warm_up: Turns before that, which do not count.
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
    """What one candidate takes beyond the best of another."""
    return Timing(tuple(seconds - base.best for seconds in ours.seconds))


def times(ours: Timing, theirs: Timing) -> float:
    """How many times as long as another candidate, turn by turn: what disturbs one turn disturbs both of them."""
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
    """The garbage collector would charge one candidate for the objects of another."""
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
