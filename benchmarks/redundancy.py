"""The redundancy filter, compared with LangChain's maximal marginal relevance over as many vectors."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import numpy as np
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from numpy.typing import NDArray

from benchmarks.result import Figure, Result, Table, main
from benchmarks.timing import Timing, interleave, ms
from oprag.pipeline.thresholds import find_repeats

DIMENSION = 384
THRESHOLD = 0.9
# Rows, limit in milliseconds, and turns.
SIZES = ((128, 0.5, 40), (2_000, 60.0, 8))
# For each pick, LangChain compares each candidate with all picked ones: 2,000 rows take minutes.
MMR_ROWS = 128


def run() -> Result:
    """Time the filter on vectors of which many repeat another one, and on vectors without repeats."""
    rows: list[list[str]] = []
    figures: list[Figure] = []
    for size, limit, turns in SIZES:
        for vectors in (_vectors(size, size // 2), _vectors(size, 0)):
            kept = int((find_repeats(vectors, THRESHOLD)[0] < 0).sum())
            name = _repeating(kept, size)
            cases: dict[str, Callable[[], object]] = {"oprag": partial(find_repeats, vectors, THRESHOLD)}
            if size <= MMR_ROWS:
                for way, given in (("LangChain", list(vectors)), ("LangChain, lists", vectors.tolist())):
                    cases[way] = partial(maximal_marginal_relevance, vectors[0], given, k=kept)
            timings = interleave(cases, turns, warm_up=2)
            ours = timings["oprag"]
            figures.append(
                Figure(
                    f"{size:,} chunks, {name}",
                    f"at most {limit:g} ms",
                    f"{ms(ours.median)} ms",
                    ours.median * 1000 <= limit,
                )
            )
            theirs = (_beside(timings.get(other), ours) for other in ("LangChain", "LangChain, lists"))
            rows.append([f"{size:,}, {name}", f"{kept:,}", str(ours), *theirs])
    size = SIZES[-1][0]
    peak = max(_peak(_vectors(size, size // 2)), _peak(_vectors(size, 0)))
    whole = size * size * 4
    figures.append(
        Figure(
            f"peak memory for {size:,} chunks (a matrix of all pairs: {whole / 1e6:.0f} MB)",
            f"no matrix of {size:,} × {size:,} ({whole / 1e6:.0f} MB)",
            f"{peak / 1e6:.1f} MB",
            peak < whole / 2,
        )
    )
    return Result(
        "Redundancy filter",
        f"Unit vectors of {DIMENSION} dimensions, best first, threshold {THRESHOLD:g}. LangChain's "
        "`maximal_marginal_relevance` picks as many chunks as the filter keeps, from an array or from lists, the type "
        f"that stores pass; with 2,000 chunks it takes minutes. Peak memory of oprag for {size:,} chunks: "
        f"{peak / 1e6:.1f} MB (a matrix of all pairs: {whole / 1e6:.0f} MB).",
        figures=figures,
        tables=[
            Table(
                "Milliseconds:",
                ["chunks", "kept", "oprag", "LangChain MMR, array", "LangChain MMR, lists"],
                rows,
            )
        ],
    )


def _vectors(rows: int, centers: int) -> NDArray[np.float32]:
    """Unit vectors around this number of centers; if 0, in all directions."""
    generator = np.random.default_rng(0)
    vectors = generator.standard_normal((rows, DIMENSION))
    if centers:
        vectors = (
            generator.standard_normal((centers, DIMENSION))[generator.integers(centers, size=rows)] + 0.2 * vectors
        )
    unit: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _repeating(kept: int, size: int) -> str:
    return "none repeats another" if kept == size else f"{1 - kept / size:.0%} repeat another"


def _beside(theirs: Timing | None, ours: Timing) -> str:
    return "-" if theirs is None else f"{theirs}, {theirs.median / ours.median:.0f} times"


def _peak(vectors: NDArray[np.float32]) -> int:
    tracemalloc.start()
    try:
        find_repeats(vectors, THRESHOLD)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    main(run)
