"""Self-Route: its score, how often the first step was enough, and its tokens over k."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from oprag.compare.analysis.wording import amount, interval, share
from oprag.compare.report.material import Material
from oprag.compare.report.page import Part, Section, Table, Text
from oprag.compare.setting import Setting

__all__ = ["section"]

_MOST = 100


def section(material: Material) -> Section | None:
    """The section, where there are settings of `self_route`."""
    settings = [setting for setting in material.settings if setting.values["method"] == "self_route"]
    if not settings:
        return None
    parts: list[Part] = [
        Text(
            "Self-Route (Li et al. 2024, arXiv 2407.16833) answers from the retrieved chunks, or says that they do not "
            "hold the answer; only then it reads the whole documents. The share of long-context tokens is what it "
            "read in both steps, as a share of what reading the whole documents takes."
        ),
        _table(material, settings),
    ]
    return Section("self-route", "Self-Route", parts)


def _table(material: Material, settings: Sequence[Setting]) -> Table:
    rows = []
    numbers = {id(setting): number for number, setting in enumerate(material.settings)}
    for setting, name in zip(settings[:_MOST], material.names(settings), strict=False):
        row = material.table[numbers[id(setting)]]
        routes = _routes(material, setting)
        rows.append(
            (
                name,
                interval(row.scores.get(material.metric or "")),
                share(_first_step(routes)),
                f"{sum(routes.values()):,}",
                share(_long_share(material, setting)),
                amount(material.mean(setting, "tokens")),
            )
        )
    return Table(
        "What Self-Route scored, and what it read",
        (
            "setting",
            material.metric or "score",
            "answered at the first step",
            "routed answers",
            "share of long-context tokens",
            "tokens of an answer",
        ),
        rows,
        more=len(settings) - len(rows),
    )


def _routes(material: Material, setting: Setting) -> Counter[str]:
    return sum((material.routes.get(cell.key, Counter()) for cell in setting.cells), Counter())


def _first_step(routes: Counter[str]) -> float | None:
    return routes["rag"] / sum(routes.values()) if routes else None


def _long_share(material: Material, setting: Setting) -> float | None:
    return material.mean(setting, "long_context_share") if "long_context_share" in material.metrics else None
