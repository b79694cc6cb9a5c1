"""Retrieval vs. whole documents, question by question."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oprag.compare.analysis.settings import nearest, varying_axes
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import name_of, named
from oprag.compare.report.page import HEIGHTS, Part, Section, Table, Text
from oprag.compare.results import Results
from oprag.compare.stats.resampling import FloatArray

__all__ = ["section"]

_NEAREST = (
    " Several settings read whole documents; each retrieval setting is compared with the one that shares the most "
    "values with it."
)
_BINS = 11  # odd, so that one bin is centered at 0


def section(results: Results, metric: str | None) -> Section | None:
    """The differences between `stuff` and `long_context`, if there are settings of both."""
    retrieval, whole = (
        [one for one in results.settings if one.values["method"] == name] for name in ("stuff", "long_context")
    )
    if metric is None:
        return None
    found: dict[str, FloatArray] = {}
    cut: dict[str, None] = {}
    pairs = list(nearest(retrieval, whole, ("data", "model")))
    for (setting, other), name in zip(pairs, _names([setting for setting, _ in pairs]), strict=True):
        differences = setting.by_question(metric) - other.by_question(metric)
        if len(differences := differences[~np.isnan(differences)]):
            found[name] = differences
            if other.values.get("source_token_budget") is not None and other.values.get("overflow") != "error":
                cut[named(other.values, ("source_token_budget", "overflow"))] = None
    if not found:
        return None
    max_difference = max(1.0, *(float(np.abs(differences).max()) for differences in found.values()))
    bins = [_bins(differences, max_difference) for differences in found.values()]
    highest = max(map(max, bins))
    parts: list[Part] = [
        Text(
            "The same model answers each question once from the retrieved chunks (stuff) and once from its whole "
            "documents (long_context). A positive difference means that retrieval is better."
            + (_NEAREST if len(whole) > 1 else "")
        ),
        Table(
            "Number of questions that retrieval answers better, equally well and worse",
            (
                "setting",
                "questions",
                "mean difference",
                "better",
                "equal",
                "worse",
                f"questions by difference, from −{max_difference:g} to +{max_difference:g}",
            ),
            [(name, *_counts(differences)) for name, differences in found.items()],
            bars=[[round(HEIGHTS * count / highest) or min(1, count) for count in line] for line in bins],
        ),
    ]
    if cut:
        parts.append(
            Text(
                f"Long documents were truncated to fit ({'; '.join(cut)}), so for these retrieval is compared with "
                "only a part of the document."
            )
        )
    return Section("whole", "Retrieval vs. whole documents", parts)


def _names(settings: Sequence[SettingSummary]) -> list[str]:
    """Short names of settings: their values on the axes in which they differ, except the method."""
    differ = [name for name in varying_axes(settings)[0] if name != "method"]
    return [name_of(one.values, differ) for one in settings]


def _counts(differences: FloatArray) -> tuple[str, str, str, str, str]:
    better, worse = int(np.sum(differences > 0)), int(np.sum(differences < 0))
    mean = f"{differences.mean():+z.3f}"
    return f"{len(differences):,}", mean, f"{better:,}", f"{len(differences) - better - worse:,}", f"{worse:,}"


def _bins(differences: FloatArray, max_difference: float) -> list[int]:
    places = np.rint((differences / max_difference + 1) / 2 * (_BINS - 1)).astype(int)
    return np.bincount(places, minlength=_BINS).tolist()  # type: ignore[no-any-return]
