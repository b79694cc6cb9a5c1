"""Self-Route: its score, how often the first step was enough, and its tokens over k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from oprag.compare.analysis.summary import SettingSummary
from oprag.compare.analysis.wording import amount, interval, share
from oprag.compare.report.material import Material
from oprag.compare.report.page import Part, Section, Table, Text

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


def _table(material: Material, settings: Sequence[SettingSummary]) -> Table:
    rows = []
    for setting, name in zip(settings[:_MOST], material.names(settings), strict=False):
        routes = setting.routes
        rows.append(
            (
                name,
                interval(setting.scores.get(material.metric or "")),
                share(_first_step(routes)),
                f"{sum(routes.values()):,}",
                share(_mean(setting, "long_context_share")),
                amount(setting.cost("tokens")),
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


def _first_step(routes: Mapping[str, int]) -> float | None:
    return routes.get("rag", 0) / sum(routes.values()) if routes else None


def _mean(setting: SettingSummary, metric: str) -> float | None:
    return setting.scores[metric].mean if metric in setting.scores else None
