"""The assembly of retrieved chunks: ordering only, and everything from selection to rendered text."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Mapping, Sequence
from operator import itemgetter

from benchmarks.chunks import KINDS, retrieved
from benchmarks.result import Figure, Result, Table, main
from benchmarks.timing import Timing, interleave, ms
from oprag import Chunk, ContextOptions, arrange, build_context
from oprag.errors import OpragWarning

COUNT = 128
ROUNDS, IN_A_ROW = 20, 10
# A counter that takes no time, because the time of a tokenizer is not part of the assembly.
AMPLE = ContextOptions(token_budget=10**9, count_tokens=len)

ARRANGE, BUILD, BUDGET = "`arrange`", "`build_context`", "with a budget"

GROWTH = (128, 1_000, 10_000, 100_000)
GROWING = ("stamped", "offsets", "one source per chunk")
CLOSE = 1.5


def run() -> Result:
    """Time the assembly of 128 chunks for each kind of metadata, and its growth with the number of chunks."""
    warnings.simplefilter("ignore", OpragWarning)
    chunks = {kind: retrieved(kind, COUNT, among=8) for kind in KINDS}
    chunks["stamped, with offsets, adjacent"] = retrieved("stamped, with offsets", COUNT)
    chunks["offsets, overlapping"] = retrieved("offsets", COUNT, overlap=60)
    timings = {name: _time(given) for name, given in chunks.items()}
    growth = {kind: {count: _grown(kind, count) for count in GROWTH} for kind in GROWING}
    return Result(
        "Assembly",
        f"{COUNT} retrieved chunks of about 128 tokens, in random order: one in eight of the source's chunks, in the "
        "last two rows all of them. `arrange` only orders; `build_context` also selects, stitches and renders. Tokens "
        f"are counted by `len`. For comparison: Python sorts {COUNT} offsets in {_sorted()} ms.",
        figures=[
            _slowest(f"ordering {COUNT} chunks", timings, [ARRANGE], 1),
            _slowest(f"assembly of {COUNT} chunks", timings, [BUILD, BUDGET], 4),
            *(_close(kind, times) for kind, times in growth.items()),
        ],
        tables=[
            Table(
                f"Milliseconds for {COUNT} chunks:",
                ["chunks", ARRANGE, BUILD, BUDGET],
                [[name, *(str(t) for t in row.values())] for name, row in timings.items()],
            ),
            Table(
                "Milliseconds for `build_context(chunks).text`; in parentheses, the growth from 1,000 chunks relative "
                "to n · log n:",
                ["chunks", *(f"{count:,}" for count in GROWTH)],
                [
                    [kind, *(f"{ms(times[count])} ({_against(times, count):.2f})" for count in GROWTH)]
                    for kind, times in growth.items()
                ],
            ),
        ],
    )


def _time(chunks: Sequence[Chunk]) -> dict[str, Timing]:
    return interleave(
        {
            ARRANGE: lambda: arrange(chunks),
            BUILD: lambda: build_context(chunks).text,
            BUDGET: lambda: build_context(chunks, AMPLE).text,
        },
        ROUNDS,
        in_a_row=IN_A_ROW,
    )


def _grown(kind: str, count: int) -> float:
    """The median time of selecting, ordering, stitching and rendering."""
    chunks = retrieved(kind, count, among=8)
    return interleave({BUILD: lambda: build_context(chunks).text}, rounds=max(4, 50_000 // count))[BUILD].median


def _sorted() -> Timing:
    offsets = [{"start_index": place} for place in range(COUNT)]
    random.Random(0).shuffle(offsets)
    return interleave({"sorted": lambda: sorted(offsets, key=itemgetter("start_index"))}, rounds=200)["sorted"]


def _against(times: Mapping[int, float], count: int, base: int = 1_000) -> float:
    return (times[count] / times[base]) / ((count * math.log(count)) / (base * math.log(base)))


def _slowest(what: str, timings: Mapping[str, Mapping[str, Timing]], columns: Sequence[str], limit: float) -> Figure:
    """The limit applies to every kind of metadata, so the slowest decides."""
    slowest, kind, column = max((timings[kind][column].median, kind, column) for kind in timings for column in columns)
    how = kind if column == ARRANGE else f"{kind}, {column}"
    return Figure(
        f"{what}, slowest case", f"at most {limit:g} ms", f"{ms(slowest)} ms ({how})", slowest * 1000 <= limit
    )


def _close(kind: str, times: Mapping[int, float]) -> Figure:
    growth = _against(times, 10_000)
    return Figure(
        f"growth from 1,000 to 10,000 chunks, relative to n · log n, {kind}",
        f"at most {CLOSE} times",
        f"{growth:.2f} times",
        growth <= CLOSE,
    )


if __name__ == "__main__":
    main(run)
