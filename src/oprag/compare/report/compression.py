"""What thresholds save, and what they cost: each setting with them beside the same one without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

import numpy as np

from oprag.compare.analysis.settings import matches
from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import amount, change, named, score
from oprag.compare.report.material import Material
from oprag.compare.report.page import Section, Table, Text

__all__ = ["section"]

_THRESHOLDS = ("similarity_threshold", "redundancy_threshold")
_MOST = 200


def section(material: Material) -> Section | None:
    """The compression table, where there are settings with and without thresholds."""
    if not any(axis in material.differ for axis in _THRESHOLDS):
        return None
    have = [setting for setting in material.settings if all(axis in setting.values for axis in _THRESHOLDS)]
    without = [setting for setting in have if all(setting.values[axis] is None for axis in _THRESHOLDS)]
    with_some = [setting for setting in have if any(setting.values[axis] is not None for axis in _THRESHOLDS)]
    pairs = list(matches(with_some, without, (*_THRESHOLDS, "min_chunks")))
    if not pairs:
        return None
    others = [axis for axis in material.differ if axis not in (*_THRESHOLDS, "min_chunks")]
    shown: dict[str, Callable[[float | None], str]] = {material.cost: amount}
    if any(one.cost("seconds") is not None for pair in pairs for one in pair):
        shown["seconds"] = amount
    if material.metric is not None:
        shown[material.metric] = score
    *_, last = shown
    rows: list[list[str]] = []
    for setting, base in pairs[:_MOST]:
        means = {name: _means(base, setting, name) for name in shown}
        _, _, count = means[last]
        row = [named(setting.values, others), _threshold(setting.values), f"{count:,}"]
        for name, (old, new, both) in means.items():
            of_others = f" (n = {both:,})" if both not in (0, count) else ""
            row += [shown[name](old), shown[name](new), change(old, new) + of_others]
        rows.append(row)
    texts = (text for name in shown for text in (f"{name} without", "with", "change"))
    head = ["setting", "thresholds", "questions", *texts]
    table = Table("Means of an answer without and with thresholds", head, rows, names=2, more=len(pairs) - len(rows))
    note = Text(
        "Means are over the questions that have a value in both settings; changes are in percent of the figure without "
        "thresholds. Whether a change of score can be claimed is among the paired differences above.",
        quiet=True,
    )
    return Section("compression", "With and without thresholds", [table, note])


def _means(base: SettingSummary, setting: SettingSummary, name: str) -> tuple[float | None, float | None, int]:
    """The means of two settings over the questions that have a value in both, and how many these are."""
    both = np.array([base.by_question(name), setting.by_question(name)])
    old, new = both[:, ~np.isnan(both).any(axis=0)].tolist()
    return (fmean(old), fmean(new), len(old)) if old else (None, None, 0)


def _threshold(values: Mapping[str, Any]) -> str:
    return named({axis: values[axis] for axis in _THRESHOLDS if values[axis] is not None}, _THRESHOLDS)
