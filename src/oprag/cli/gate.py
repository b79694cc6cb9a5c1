"""The gate of `oprag compare` for CI: a minimum score, and a comparison with earlier results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from oprag.cli.console import print_status
from oprag.errors import OptionError
from oprag.masking import describe

if TYPE_CHECKING:
    from oprag.compare.results import Results

__all__ = ["minimum_of", "passes"]


def minimum_of(given: str) -> tuple[str, float]:
    """Read METRIC=VALUE.

    Raises:
        OptionError: It has another form, or higher is not better for the metric.
    """
    from oprag.compare.metrics.registry import check_better

    name, _, number = given.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not name.strip() or not math.isfinite(value):
        raise OptionError(f"--fail-under must be METRIC=VALUE, such as token_f1=0.4, got {describe(given)}", given)
    check_better(name.strip())
    return name.strip(), value


def passes(results: Results, minima: Sequence[tuple[str, float]], against: str | None, metric: str | None) -> bool:
    """Print whether the setting to deploy reaches the minima, and what became worse; return whether all is well.

    Args:
        results: The results.
        minima: The minimum score of each metric.
        against: An earlier results file with the same experiment.
        metric: The metric of the comparison; by default that of the results.
    """
    from oprag.compare.analysis.differences import changes_since
    from oprag.compare.analysis.wording import named
    from oprag.compare.results import Results

    well = True
    for name, least in minima:
        setting = results.deployed(name)
        mean = setting.scores[name].mean
        reached = mean is not None and mean >= least
        well &= reached
        shown = "no score" if mean is None else f"{mean:.3f}"
        where = named(setting.values, results.axes) or "the only setting"
        print_status(f"{name} of {where}: {shown}, minimum {least:g}{'' if reached else ': not reached'}")
    if against is not None:
        name = results.ranking_metric(metric)
        old = Results.open(Path(against), results.experiment)
        for one in changes_since(results.matrix, old.matrix, name):
            worse = one.difference.significantly_lower
            well &= not worse
            verdict = "worse" if worse else "not significantly worse"
            where = named(one.setting.values, results.axes) or "the only setting"
            print_status(f"{name} of {where}: {one.difference.describe()} since {against}: {verdict}")
    return well
