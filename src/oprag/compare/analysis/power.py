"""The smallest differences that the questions of an experiment can detect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

import numpy as np

from oprag.chunk import counted
from oprag.compare.analysis.effects import pool_pairs
from oprag.compare.analysis.matrix import ResultMatrix
from oprag.compare.analysis.settings import varying_axes
from oprag.compare.metrics.registry import higher_is_better
from oprag.compare.stats.power import POWER, detectable_difference

__all__ = ["power_of"]


def power_of(matrix: ResultMatrix, questions: Mapping[str, int]) -> Iterator[str]:
    """One sentence with the detectable difference for each data set with enough answers to estimate it.

    It uses the first metric for which higher is better, and the orders if they vary, else the values of the first
    varying axis, pooled over all otherwise equal settings.
    """
    # Data sets have different questions, so they are not compared.
    axes = [name for name in varying_axes(matrix.settings)[0] if name != "data"]
    named = [name for name in matrix.described.get("metrics", ()) if name in matrix.values]
    metric = next((name for name in named if higher_is_better(name, matrix.described)), None)
    axis = "order" if "order" in axes else next(iter(axes), None)
    if metric is None or axis is None:
        return
    for data, asked in questions.items():
        pooled = pool_pairs(matrix, metric, axis, data)
        found = [
            detectable_difference(one.apart, matrix.clusters, questions=asked, comparisons=len(pooled))
            for one in pooled
        ]
        known = [difference for difference in found if difference is not None]
        if known:
            answered = max(int(np.sum(~np.isnan(one.apart))) for one in pooled)
            corrected = f", corrected for {len(pooled):,} comparisons" if len(pooled) > 1 else ""
            yield (
                f"{metric} by {axis}{f' of {data}' if len(questions) > 1 else ''}: with {counted(asked, 'question')}, "
                f"differences of about {float(f'{median(known):.2g}'):,g} or more can be detected (from "
                f"{counted(answered, 'question')} with answers; {100 * POWER:g} % power at 95 %{corrected})"
            )
