"""Self-Route: its score, how often the first step was enough, and its tokens over k."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from oprag.compare.analysis.settings import varying_axes
from oprag.compare.analysis.wording import amount, interval, named, share, value_text
from oprag.compare.report.charts import Axis, Line, LinePoint, line_chart
from oprag.compare.report.material import Material
from oprag.compare.report.parts import Figure, Part, Section, Table, Text
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
        *_charts(material, settings),
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


def _charts(material: Material, settings: Sequence[Setting]) -> list[Part]:
    """Shares and tokens over k, a line for each setting that is else the same."""
    if len({setting.values.get("k") for setting in settings} - {None}) < 2:
        return []
    others = [axis for axis in varying_axes(settings)[0] if axis not in ("k", "method")]
    measures = (
        ("answered at the first step", "share"),
        ("share of long-context tokens", "share"),
        ("tokens of an answer", "tokens"),
    )
    values: list[dict[str, list[LinePoint]]] = [{}, {}, {}]
    for setting in settings:
        if setting.values.get("k") is None:
            continue
        name = named(setting.values, others) or "self_route"
        tokens = material.mean(setting, "tokens")
        for lines, y in zip(
            values, (_first_step(_routes(material, setting)), _long_share(material, setting), tokens), strict=True
        ):
            if y is not None:
                lines.setdefault(name, []).append(LinePoint(float(setting.values["k"]), y))
    charts: list[Part] = []
    for (what, unit), lines in zip(measures, values, strict=True):
        if not lines:
            continue
        title = f"{what[0].upper()}{what[1:]} over k"
        told = [
            f"{name}: {', '.join(f'{amount(point.y)} at k {value_text(int(point.x))}' for point in points)}"
            for name, points in lines.items()
        ]
        chart = line_chart(
            [Line(name, sorted(points, key=lambda point: point.x)) for name, points in lines.items()],
            title=title,
            description=". ".join(told) + ".",
            x=Axis("k", "chunks", logarithmic=True),
            y=Axis(what, unit, least=0),
        )
        charts.append(Figure(chart))
    return charts
