"""Overhead of the harness: per answer, and for resuming a run with recorded calls."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.language_reference import language_reference
from benchmarks.recording_model import make
from benchmarks.result import Figure, Result, Table, main
from benchmarks.sharing import METHODS
from oprag.compare.experiment import Experiment
from oprag.compare.plan import make_plan
from oprag.compare.running.run import run as run_experiment

ASKED_MS, ASKED_SECONDS = 2.0, 5.0
CALLS = 100_000
QUESTIONS = 500
RUNS = 5


def run() -> Result:
    """Run with a model that replies at once."""
    result = Result(
        "Harness",
        "A model that replies at once, 8 concurrent calls, 100 questions about the Python language reference (20 "
        "distinct), all metrics that apply. The time of the whole run is divided "
        "by the number of answers (one question in one cell); documents were split and embedded beforehand.",
    )
    rows = []
    for name, grid in GRIDS.items():
        experiment = _experiment(grid)
        taken: list[tuple[float, float]] = []
        for _ in range(RUNS):
            with TemporaryDirectory() as folder:
                path = Path(folder, "results.db")
                run_experiment(_experiment({"k": 1}, questions=1), path)
                used = time.process_time()
                report = run_experiment(experiment, path)
                taken.append((1000 * report.seconds / report.total, 1000 * (time.process_time() - used) / report.total))
        started = time.perf_counter()
        make_plan(experiment)
        planned = 1000 * (time.perf_counter() - started) / report.total
        wall, processor = (median(column) for column in zip(*taken, strict=True))
        reached = report.complete and wall <= ASKED_MS
        result.figures.append(Figure(f"{name}: per answer", f"at most {ASKED_MS:g} ms", f"{wall:.2f} ms", reached))
        figures = [wall, processor, planned]
        counts = [f"{number:,}" for number in (report.total, report.spent.calls)]
        rows.append([name, *counts, *(f"{figure:.2f}" for figure in figures)])
    head = ["grid", "answers", "calls", "time", "CPU time", "planning"]
    result.tables.append(Table(f"Milliseconds per answer, {RUNS} runs:", head, rows))
    resumed = _resumed()
    result.figures.append(resumed)
    result.notes.append(f"{resumed.what[0].upper()}{resumed.what[1:]}: {resumed.measured}.")
    return result


GRIDS: dict[str, dict[str, Any]] = {
    "7 methods, 4 orders, k = 16": {"method": METHODS, "order": ["source", "rank", "reverse_rank", "edges"], "k": 16},
    "stuff, 5 orders, k = 8 to 128": {
        "order": ["source", "rank", "reverse_rank", "edges", "random"],
        "k": [8, 16, 32, 64, 128],
    },
    "stuff, 25 pairs of thresholds, k = 64": {
        "similarity_threshold": [0.1, 0.15, 0.2, 0.25, 0.3],
        "redundancy_threshold": [0.5, 0.6, 0.7, 0.8, 0.9],
        "k": 64,
    },
}


def _experiment(grid: dict[str, Any], times: int = 5, questions: int | None = None) -> Experiment:
    data = language_reference(times)
    return Experiment(
        name=f"harness {questions or ''}",
        data={"reference": replace(data, questions=data.questions[:questions])},
        models={"instant": make()},
        grid={"source_token_budget": 4_000, "overflow": "truncate_end", "variants": 2, **grid},
    )


def recorded() -> Experiment:
    """An experiment with 100,000 calls."""
    return _experiment({"k": 4, "repeat": list(range(1, CALLS // QUESTIONS + 1))}, times=QUESTIONS // 20)


def _resumed() -> Figure:
    with TemporaryDirectory() as folder:
        path = Path(folder, "results.db")
        first = run_experiment(recorded(), path)
        code = (
            "from benchmarks.harness import recorded, run_experiment; "
            f"report = run_experiment(recorded(), {str(path)!r}); print(report.seconds, report.complete)"
        )
        command = [sys.executable, "-c", code]
        started = time.perf_counter()
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        seconds = time.perf_counter() - started
    return Figure(
        f"resuming a run with {first.spent.calls:,} recorded calls in a new process",
        f"at most {ASKED_SECONDS:g} s",
        f"{seconds:.1f} s, {float(printed[0]):.1f} s of it in the run",
        printed[1] == "True" and first.spent.calls == CALLS and seconds <= ASKED_SECONDS,
    )


if __name__ == "__main__":
    main(run)
