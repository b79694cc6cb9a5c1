"""What `oprag compare --measure` found: time, processor and memory of each phase."""

from __future__ import annotations

from oprag.compare.analysis.summary import measured_how
from oprag.compare.analysis.wording import spread
from oprag.compare.report.material import Material
from oprag.compare.report.page import Section, Table, Text

__all__ = ["section"]

_MOST = 200


def section(material: Material) -> Section | None:
    """The table of phases, where something was measured."""
    rows = [
        (
            material.name(setting.values),
            phase,
            spread(taken.seconds.median, taken.seconds.standard_deviation, 3),
            f"{taken.cpu_percent:.0f}",
            f"{taken.peak_memory_bytes / 1e6:,.0f}",
            f"{taken.memory_growth_bytes / 1e6:,.0f}",
        )
        for setting in material.settings
        for phase, taken in setting.phases.items()
    ]
    if not rows:
        return None
    table = Table(
        "Time, processor and memory of each phase, over questions",
        ("setting", "phase", "seconds, median ± standard deviation", "CPU %", "peak MB", "growth MB"),
        rows[:_MOST],
        names=2,
        more=max(0, len(rows) - _MOST),
    )
    told = (
        f"Cells were measured one at a time, each in a fresh process without caches. {measured_how(material.settings)}"
    )
    note = Text(told, quiet=True)
    return Section("measured", "Time, processor and memory", [table, note])
