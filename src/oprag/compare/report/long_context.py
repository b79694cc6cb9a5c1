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
    " Whole documents were read in several settings; each of retrieval is compared with the one that shares the most "
    "values with it."
)
_BINS = 11  # an odd number, so that one of them is around 0


def section(results: Results, metric: str | None) -> Section | None:
    """The differences between `stuff` and `long_context`, where there are settings of both."""
    retrieval, whole = (
        [one for one in results.settings if one.values["method"] == name] for name in ("stuff", "long_context")
    )
    if metric is None:
        return None
    found: dict[str, FloatArray] = {}
    cut: dict[str, None] = {}
    pairs = list(nearest(retrieval, whole, ("data", "model")))
    for (setting, other), name in zip(pairs, _names([setting for setting, _ in pairs]), strict=True):
        apart = setting.by_question(metric) - other.by_question(metric)
        if len(apart := apart[~np.isnan(apart)]):
            found[name] = apart
            if other.values.get("source_token_budget") is not None and other.values.get("overflow") != "error":
                cut[named(other.values, ("source_token_budget", "overflow"))] = None
    if not found:
        return None
    reach = max(1.0, *(float(np.abs(apart).max()) for apart in found.values()))
    bins = [_bins(apart, reach) for apart in found.values()]
    most = max(map(max, bins))
    parts: list[Part] = [
        Text(
            "Each question is answered once from what was retrieved (stuff) and once from its whole documents "
            "(long_context), by the same model. To the right of 0 retrieval is better."
            + (_NEAREST if len(whole) > 1 else "")
        ),
        Table(
            "How many questions retrieval answers better, the same and worse",
            (
                "setting",
                "questions",
                "mean difference",
                "better",
                "the same",
                "worse",
                f"questions by difference, from −{reach:g} to +{reach:g}",
            ),
            [(name, *_counts(apart)) for name, apart in found.items()],
            bars=[[round(HEIGHTS * count / most) or min(1, count) for count in line] for line in bins],
        ),
    ]
    if cut:
        parts.append(
            Text(
                f"Not always whole: documents were cut to fit ({'; '.join(cut)}), so retrieval is compared with a part "
                "of the longer ones."
            )
        )
    return Section("whole", "Retrieval vs. whole documents", parts)


def _names(settings: Sequence[SettingSummary]) -> list[str]:
    """What some settings are called among themselves: by the axes in which they differ, but for the method."""
    differ = [name for name in varying_axes(settings)[0] if name != "method"]
    return [name_of(one.values, differ) for one in settings]


def _counts(apart: FloatArray) -> tuple[str, str, str, str, str]:
    better, worse = int(np.sum(apart > 0)), int(np.sum(apart < 0))
    mean = f"{apart.mean():+z.3f}"
    return f"{len(apart):,}", mean, f"{better:,}", f"{len(apart) - better - worse:,}", f"{worse:,}"


def _bins(apart: FloatArray, reach: float) -> list[int]:
    places = np.rint((apart / reach + 1) / 2 * (_BINS - 1)).astype(int)
    return np.bincount(places, minlength=_BINS).tolist()  # type: ignore[no-any-return]
