"""The calls saved by sharing, in a grid of the shape of Şakar and Emekci's."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.language_reference import language_reference
from benchmarks.recording_model import calls_in, make, set_up
from benchmarks.result import Figure, Result, Table, main
from oprag.compare.db.records import Spent
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.experiment import Experiment
from oprag.compare.plan import MemoryCache, make_plan
from oprag.compare.running.engine import Engine
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.running.retrieval import Retrieval
from oprag.compare.running.run import run as run_experiment
from oprag.compare.spending import Limits, Spending

METHODS = ("stuff", "map_reduce", "refine", "map_rerank", "step_down", "reciprocal", "self_route")
STORES = ("chroma", "faiss", "qdrant")
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
LOWER = (0.1, 0.15, 0.2, 0.25, 0.3)
"""Similarities of the static embedder are lower than those that the paper's thresholds suit."""
ASKED = 0.35


def run() -> Result:
    """Run the grid with sharing, and then each cell separately."""
    result = Result(
        "Sharing",
        f"{len(METHODS)} methods, the stores {', '.join(STORES)}, 25 pairs of thresholds, 20 questions about the "
        "Python language reference, k = 16. Cell by cell: no reply of another cell is reused.",
        tables=[
            Table(
                "Model calls:",
                [
                    "similarity thresholds",
                    "planned",
                    "made",
                    "for distinct contexts",
                    "cell by cell",
                    "share",
                    "same answers",
                ],
                [],
            )
        ],
    )
    for thresholds in (LOWER, THRESHOLDS):
        _add(result, thresholds)
    return result


def _add(result: Result, similarities: tuple[float, ...]) -> None:
    with TemporaryDirectory() as folder:
        log, path = Path(folder, "calls"), Path(folder, "results.db")
        set_up(log)
        experiment = _experiment(similarities)
        planned = make_plan(experiment).calls
        report = run_experiment(experiment, path)
        made = calls_in(log)
        shared = _answers(path)
        set_up(None)
        alone, by_itself, distinct = _cell_by_cell(experiment, path)
    shown = f"{similarities[0]:g} to {similarities[-1]:g}"
    (table,) = result.tables
    row = [planned, len(made), distinct, by_itself]
    same = f"{sum(shared[place] == alone[place] for place in alone):,} of {len(alone):,}"
    table.rows.append([shown, *(f"{number:,}" for number in row), f"{len(made) / by_itself:.1%}", same])  # type: ignore[attr-defined]
    result.figures += [
        Figure(
            f"{shown}: answered, with no call made twice",
            "all",
            f"{report.answered:,} of {report.total:,}",
            report.complete and len(made) == len(set(made)),
        ),
        Figure(
            f"{shown}: calls made",
            f"at most {distinct:,}, those for distinct contexts",
            f"{len(made):,}",
            len(made) <= distinct,
        ),
        Figure(
            f"{shown}: calls made, relative to cell by cell",
            f"at most {ASKED:.0%}",
            f"{len(made) / by_itself:.1%}",
            len(made) <= ASKED * by_itself,
        ),
        Figure(
            f"{shown}: answers identical to cell by cell",
            "all",
            same,
            shared == alone,
        ),
    ]


def _experiment(similarities: tuple[float, ...]) -> Experiment:
    return Experiment(
        name="grid",
        data={"reference": language_reference()},
        models={"recording": make()},
        grid={
            "method": METHODS,
            "store": STORES,
            "similarity_threshold": similarities,
            "redundancy_threshold": THRESHOLDS,
            "k": 16,
            "variants": 2,
            "source_token_budget": 4_000,
            "overflow": "truncate_end",
        },
    )


def _answers(path: Path) -> dict[tuple[str, str], str]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT cell, question, text FROM answers WHERE status = 'answered'").fetchall()
    return {(cell, question): text for cell, question, text in rows}


def _cell_by_cell(experiment: Experiment, path: Path) -> tuple[dict[tuple[str, str], str], int, int]:
    """Return the answers without sharing, the number of calls, and that for distinct contexts."""
    prepared = PreparedExperiment(experiment)
    file = ResultsFile(path)
    retrieval = Retrieval(prepared, MemoryCache(file))
    answers: dict[tuple[str, str], str] = {}
    calls = 0
    distinct: dict[Any, int] = {}
    items = list(prepared.items())
    for row in prepared.cell_records:
        keeper = MemoryCache()
        ledger = Spending(experiment, Limits(), Spent())
        engine = Engine(prepared, retrieval, keeper, ledger)
        for outcome in engine.run(item for item in items if item.place[0] == row.key):
            assert outcome.answer is not None, outcome.error
            item = outcome.item
            answers[item.place] = outcome.answer.text
            calls += len(outcome.calls)
            contexts = tuple(context.text for context in outcome.answer.contexts)
            distinct[item.cell.method, item.place[1], contexts] = len(outcome.calls)
        retrieval.close()
    return answers, calls, sum(distinct.values())


if __name__ == "__main__":
    main(run)
