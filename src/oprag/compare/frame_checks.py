"""What a table of settings is asked for: a metric of which there are scores, one data set, what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oprag.compare.frame_table import SettingTable
from oprag.compare.quantities import COSTS, SECONDS, check_cost, usual_cost
from oprag.compare.spec.axes import check_axis
from oprag.compare.table import check_metric
from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["better_metric", "check_measured", "check_one_data_set", "pivoted", "scored_rows"]


def better_metric(table: SettingTable, metric: str | None) -> str:
    """The metric that is meant.

    Raises:
        OptionError: There are no scores of it, or more of it is not better.
    """
    metric = table.metric if metric is None else metric
    check_metric(metric, table.results)
    if metric not in table.metrics:
        there = f"; there are of {', '.join(table.metrics)}" if table.metrics else ", nor of any other metric"
        raise OptionError(f"there are no scores of {metric!r}{there}", metric)
    return metric


def check_one_data_set(table: SettingTable, what: str) -> None:
    """Refuse settings of several data sets.

    Raises:
        OptionError: There are several; their questions differ, and with them how hard they are.
    """
    data = list(dict.fromkeys(row.values["data"] for row in table.settings))
    if len(data) > 1:
        raise OptionError(
            f"there are several data sets ({', '.join(map(str, data))}), whose questions differ: "
            f".where(data={data[0]!r}).{what}",
            data,
        )


def pivoted(table: SettingTable, rows: str, columns: str, metric: str | None) -> str:
    """The metric, or the cost, that is meant of two axes.

    Raises:
        OptionError: They are no two axes, or there is nothing of the metric.
    """
    check_axis(rows)
    check_axis(columns)
    if rows == columns:
        raise OptionError(f"rows and columns must be two axes, got {describe(rows)} for both", columns)
    metric = table.metric if metric is None else metric
    if metric not in COSTS and metric not in table.metrics:
        raise OptionError(f"there is no metric {metric!r}; there are {', '.join((*table.metrics, *COSTS))}", metric)
    check_measured(table, metric)
    return metric


def scored_rows(table: SettingTable, metric: str, cost: str | None) -> tuple[str, list[Mapping[str, Any]]]:
    """The cost that is meant, and the rows with a score and that cost.

    Raises:
        OptionError: There is no such cost, or no setting with a score has it.
    """
    if cost is None:
        cost = usual_cost([setting for setting in table.settings if metric in setting.scores])
    check_cost(cost)
    check_measured(table, cost)
    rows = [row for row in table if row[metric] is not None and row.get(cost) is not None]
    if not rows:
        raise OptionError(
            f"no setting with a score of {metric} has {cost}; where no model is asked there are context_tokens", cost
        )
    return cost, rows


def check_measured(table: SettingTable, name: str) -> None:
    """Refuse seconds where none were measured.

    Raises:
        OptionError: They were not.
    """
    if name in SECONDS and not table.seconds:
        raise OptionError(
            f"{name} were not measured; oprag.compare.measure_cells does, or oprag compare --measure", name
        )
