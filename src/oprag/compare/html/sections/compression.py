"""What thresholds save, and what they cost: each setting with them beside the same one without."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from oprag.compare.html.material import Material
from oprag.compare.html.partners import partners
from oprag.compare.html.parts import Section, Table, Text
from oprag.compare.html.pooled import Pool, pooled
from oprag.compare.html.words import amount, change, named, score

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
    pairs = list(partners(with_some, without, (*_THRESHOLDS, "min_keep")))
    if not pairs:
        return None
    others = [axis for axis in material.differ if axis not in (*_THRESHOLDS, "min_keep")]
    timed = any(material.seconds.get(cell.key) for pair in pairs for one in pair for cell in one.cells)
    rows: list[list[str]] = []
    for setting, base in pairs[:_MOST]:
        new, old = pooled(material, [setting]), pooled(material, [base])
        row = [named(setting.values, others), _threshold(setting.values)]
        row += _sides(Pool.mean(old.tokens), Pool.mean(new.tokens), amount)
        if timed:
            row += _sides(Pool.mean(old.seconds), Pool.mean(new.seconds), amount)
        if material.metric is not None:
            row += _sides(Pool.mean(old.scores), Pool.mean(new.scores), score)
        rows.append(row)
    head = ["setting", "thresholds", "tokens without", "with", "change"]
    head += ["seconds without", "with", "change"] if timed else []
    head += [f"{material.metric} without", "with", "change"] if material.metric is not None else []
    table = Table("Means of an answer without and with thresholds", head, rows, names=2, more=len(pairs) - len(rows))
    note = Text(
        "Changes are in percent of the figure without thresholds. Whether a change of score can be claimed is among "
        "the paired differences above.",
        quiet=True,
    )
    return Section("compression", "With and without thresholds", [table, note])


def _threshold(values: Mapping[str, Any]) -> str:
    return named({axis: values[axis] for axis in _THRESHOLDS if values[axis] is not None}, _THRESHOLDS)


def _sides(old: float | None, new: float | None, shown: Callable[[float | None], str]) -> list[str]:
    return [shown(old), shown(new), change(old, new)]
