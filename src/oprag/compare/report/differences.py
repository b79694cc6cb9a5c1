"""Settings that differ in one axis alone, question by question, and in words what that shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oprag.compare.analysis.differences import SettingDifference
from oprag.compare.analysis.wording import named, value_text
from oprag.compare.report.comparisons import Comparisons, claim, corrected
from oprag.compare.report.material import Material
from oprag.compare.report.page import Heading, Part, Section, Table, Text

__all__ = ["section"]

_MOST = 60  # rows for each axis


def section(material: Material, comparisons: Comparisons) -> Section | None:
    """The differences."""
    parts = [*_parts(material, comparisons)]
    return Section("differences", "What differs, question by question", parts) if parts else None


def _parts(material: Material, comparisons: Comparisons) -> Iterator[Part]:
    if not comparisons.by_axis and not comparisons.too_many:
        return
    yield Text(
        "Each setting is held against the one that differs from it in one axis alone, over the questions that both "
        "have. The interval is the 95 % bootstrap interval of the mean difference; p is that of a sign-flip test, "
        f"{corrected(material)} A difference is claimed where the interval excludes 0 and p is below 0.05. Where it is "
        "not, none was found, which does not show that there is none."
    )
    for axis, pairs in comparisons.by_axis.items():
        yield Heading(f"{axis}: others against {value_text(pairs[0].baseline_value)}")
        yield _table(material, axis, pairs)
    for axis, count in comparisons.too_many.items():
        yield Text(
            f"{count:,} pairs of settings differ in {axis} alone, too many to compare here: "
            f'Results.open("{material.results.path.name}").differences("{axis}") has them.'
        )


def _table(material: Material, axis: str, pairs: Sequence[SettingDifference]) -> Table:
    rows: list[Sequence[str]] = []
    for pair in sorted(pairs, key=_clearest)[:_MOST]:
        difference = pair.difference
        where = named({**pair.values, **pair.alone}, [name for name in material.differ if name != axis])
        against = named(pair.baseline_alone, material.differ)
        ends = (
            "–"
            if difference.low is None or difference.high is None
            else f"[{difference.low:+z.3f}, {difference.high:+z.3f}]"
        )
        rows.append(
            (
                value_text(pair.value),
                f"{where} (against {against})".strip() if against else where or "–",
                "–" if difference.mean is None else f"{difference.mean:+z.3f}",
                ends,
                f"{difference.n:,}",
                "–" if difference.adjusted_p is None else f"{difference.adjusted_p:.2g}",
                claim(pair),
            )
        )
    return Table(
        f"Mean difference in {pairs[0].metric} from {axis} {value_text(pairs[0].baseline_value)}, the clearest first",
        (axis, "in the setting", "difference", "95 % interval", "questions", "p (corrected)", "in words"),
        rows,
        names=2,
        words=(6,),
        more=len(pairs) - len(rows),
    )


def _clearest(pair: SettingDifference) -> tuple[float, float]:
    return 2.0 if pair.difference.adjusted_p is None else pair.difference.adjusted_p, -abs(pair.difference.mean or 0.0)
