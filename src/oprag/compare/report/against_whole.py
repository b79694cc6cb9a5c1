"""Retrieval against reading whole documents: the difference of their scores, question by question."""

from __future__ import annotations

import numpy as np

from oprag.compare.analysis.settings import nearest
from oprag.compare.analysis.wording import named
from oprag.compare.report.material import Material
from oprag.compare.report.page import HEIGHTS, Part, Section, Table, Text

__all__ = ["section"]

_MOST = 60
_NEAREST = (
    " Whole documents were read in several settings; each of retrieval is held against the one that shares the most "
    "values with it."
)
_BINS = 11  # an odd number, so that one of them is around 0


def section(material: Material) -> Section | None:
    """The table, where there are settings of `stuff` and of `long_context`."""
    metric = material.metric
    by_method = {
        method: [setting for setting in material.settings if setting.values["method"] == method]
        for method in ("stuff", "long_context")
    }
    if metric is None:
        return None
    found: dict[str, list[float]] = {}
    cut: dict[str, None] = {}
    pairs = [*nearest(by_method["stuff"], by_method["long_context"], ("data", "model"))]
    for (setting, whole), name in zip(pairs, material.names([setting for setting, _ in pairs]), strict=True):
        apart = setting.by_question(metric) - whole.by_question(metric)
        both = apart[~np.isnan(apart)].tolist()
        if both:
            found[name] = both
            if whole.values.get("source_token_budget") is not None and whole.values.get("overflow") != "error":
                cut[named(whole.values, ("source_token_budget", "overflow"))] = None
    if not found:
        return None
    reach = max(1.0, *(abs(value) for values in found.values() for value in values))
    shown = list(found.items())[:_MOST]
    bins = [_bins(values, reach) for _, values in shown]
    most = max(map(max, bins))
    parts: list[Part] = [
        Text(
            "Each question is answered once from what was retrieved (stuff) and once from its whole documents "
            "(long_context), by the same model. To the right of 0 retrieval is better."
            + (_NEAREST if len(by_method["long_context"]) > 1 else "")
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
            [(name, *_counts(values)) for name, values in shown],
            more=len(found) - len(shown),
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
    return Section("whole", "Retrieval against whole documents", parts)


def _counts(values: list[float]) -> tuple[str, str, str, str, str]:
    better, worse = sum(value > 0 for value in values), sum(value < 0 for value in values)
    mean = sum(values) / len(values)
    return f"{len(values):,}", f"{mean:+z.3f}", f"{better:,}", f"{len(values) - better - worse:,}", f"{worse:,}"


def _bins(values: list[float], reach: float) -> list[int]:
    counts = [0] * _BINS
    for value in values:
        counts[round((value / reach + 1) / 2 * (_BINS - 1))] += 1
    return counts
