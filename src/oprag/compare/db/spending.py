"""The calls, tokens and money that the runs of an experiment have spent."""

from __future__ import annotations

import sqlite3

from oprag.compare.db.records import JUDGED, Spent

__all__ = ["judge_in", "spending_of"]


def judge_in(step: str) -> tuple[str, str]:
    """SQL for whether a column of steps is of a judge's call, and for the name of that judge."""
    return f"{step} LIKE '{JUDGED}%'", f"substr({step}, {len(JUDGED) + 1})"


_IS_JUDGED, _JUDGE = judge_in("step")
_PURPOSE = f"CASE WHEN {_IS_JUDGED} THEN {_JUDGE} ELSE 'answers' END"
_OF_RUNS = "JOIN runs ON runs.id = run WHERE experiment = :experiment"
_SPENDING = (
    "SELECT model, purpose, sum(calls), sum(tokens), sum(money) FROM ("
    f"SELECT model, {_PURPOSE} AS purpose, 1 AS calls, input_tokens + output_tokens AS tokens, "
    f"coalesce(money, 0.0) AS money FROM replies {_OF_RUNS} "
    f"UNION ALL SELECT model, {_PURPOSE}, 1, 0, 0.0 FROM failed_calls {_OF_RUNS} "
    "UNION ALL SELECT json_extract(identity, '$.model'), 'answers', calls, tokens, money FROM measured_calls "
    f"JOIN cells ON cells.id = cell {_OF_RUNS}) GROUP BY model, purpose ORDER BY model, purpose"
)


def spending_of(connection: sqlite3.Connection, experiment: int) -> dict[tuple[str, str], Spent]:
    """The spending by the identity of the model and its purpose: "answers", or the name of a metric."""
    rows = connection.execute(_SPENDING, {"experiment": experiment})
    return {(model, purpose): Spent(*spent) for model, purpose, *spent in rows}
