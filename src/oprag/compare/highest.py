"""Samples as the modules hold them that are not yet on the matrix of results: the score of each question by its key."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import nan

import numpy as np

from oprag.compare.analysis import differences
from oprag.compare.analysis.matrix import as_numbers
from oprag.compare.stats.resampling import FloatArray, IntArray

__all__ = ["Scores", "as_array", "as_arrays", "highest"]

Scores = Mapping[str, float]
"""The score of each question by its key."""


def as_array(sample: Scores, questions: Sequence[str]) -> FloatArray:
    """The scores of questions, NaN where one has none."""
    return np.array([sample.get(question, nan) for question in questions], dtype=np.float64)


def as_arrays(samples: Sequence[Scores], clusters: Mapping[str, Hashable]) -> tuple[list[FloatArray], IntArray]:
    """The samples over the questions that any of them has, and the clusters of the questions."""
    questions = list(dict.fromkeys(question for one in samples for question in one))
    return [as_array(one, questions) for one in samples], as_numbers([clusters[one] for one in questions])


def highest(scores: Sequence[Scores]) -> int:
    """Where the highest sample is."""
    questions = list(dict.fromkeys(question for one in scores for question in one))
    return differences.highest([as_array(one, questions) for one in scores])
