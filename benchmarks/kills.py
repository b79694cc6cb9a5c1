"""Experiments that are killed repeatedly, and models that fail: no paid reply is lost."""

from __future__ import annotations

import argparse
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.language_reference import language_reference
from benchmarks.recording_model import calls_in, make, set_up
from benchmarks.result import Figure, Result, main
from oprag.compare.experiment import Experiment
from oprag.compare.running.run import run as run_experiment

KILLS = 50
FAILING = 0.2
SECONDS = 0.08
GRID: dict[str, Any] = {
    "method": ["stuff", "map_reduce", "refine", "map_rerank", "step_down", "reciprocal", "self_route", "closed_book"],
    "order": ["source", "rank"],
    "k": [8, 16],
    "variants": 2,
    "source_token_budget": 4_000,
    "overflow": "truncate_end",
}


def run(kills: int = KILLS, seed: int = 0) -> Result:
    """Kill, restart and compare; then let calls fail."""
    result = Result(
        "Kills and failures",
        f"{len(GRID['method'])} methods, 2 orders, k = 8 and 16, 120 questions about the Python language reference (20 "
        "distinct), 8 concurrent calls to a model that takes "
        f"{1000 * SECONDS:g} ms per call. The run was killed with SIGKILL at random moments and restarted each time.",
    )
    with TemporaryDirectory() as folder:
        _add_kills(result, Path(folder), kills, seed)
        _add_failures(result, Path(folder))
    return result


def experiment() -> Experiment:
    """The experiment."""
    return Experiment(
        name="kills",
        data={"reference": language_reference(6)},
        models={"recording": make()},
        grid=GRID,
    )


def _add_kills(result: Result, folder: Path, kills: int, seed: int) -> None:
    undisturbed, disturbed = folder / "undisturbed.db", folder / "disturbed.db"
    log = folder / "calls"
    set_up(None)
    run_experiment(experiment(), undisturbed)
    set_up(log, seconds=SECONDS)
    code = f"from benchmarks.kills import *; print(run_experiment(experiment(), {str(disturbed)!r}).complete)"
    generator = random.Random(seed)
    done, asked_again, starts, working = 0, 0, 0, 0
    complete = False
    while not complete:
        starts += 1
        committed = _replies(disturbed)
        before = len(calls_in(log))
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        if done < kills:
            time.sleep(generator.uniform(1.0, 3.0))
            if process.poll() is None:
                process.kill()
                done += 1
                working += len(calls_in(log)) > before
        printed, _ = process.communicate()
        complete = printed.strip() == "True"
        asked_again += len(committed.intersection(calls_in(log)[before:]))
    answers = _answers(disturbed)
    same = answers == _answers(undisturbed)
    calls = calls_in(log)
    result.figures += [
        Figure(
            f"killed {done} times, started {starts} times: results identical to an undisturbed run",
            "all",
            f"{len(answers):,} answers, {_same(same)}",
            same and done >= kills,
        ),
        Figure(
            "saved replies that were requested again",
            "none",
            f"{asked_again} of {len(calls):,} calls",
            asked_again == 0,
        ),
    ]
    twice = len(calls) - len(set(calls))
    result.notes.append(
        f"{working} of {done} kills interrupted a run that had made calls since its start. {twice:,} calls in progress "
        "at a kill were made twice."
    )


def _add_failures(result: Result, folder: Path) -> None:
    path = folder / "failing.db"
    set_up(None, FAILING)
    first = run_experiment(experiment(), path)
    set_up(None)
    with closing(sqlite3.connect(path)) as connection:
        (named,) = connection.execute(
            "SELECT count(*) FROM answers WHERE status = 'failed' AND error = 'ConnectionError' "
            "AND message LIKE '%the model does not answer%'"
        ).fetchone()
        (scored,) = connection.execute(
            "SELECT count(*) FROM answers WHERE status = 'failed' AND scores <> '{}'"
        ).fetchone()
    failed = sum(first.failed.values())
    second = run_experiment(experiment(), path, retry_failed=True)
    same = _answers(path) == _answers(folder / "undisturbed.db")
    result.figures += [
        Figure(
            f"{FAILING:.0%} of the calls fail: the run completes and records every failure",
            "with its cause",
            f"{failed:,} of {first.total:,} answers failed, {named:,} with the cause, {scored} of them scored",
            first.outcome == "complete" and failed == named > 0 and scored == 0,
        ),
        Figure(
            "a second run completes it",
            "results identical",
            f"{second.answered:,} of {second.total:,} answers, {_same(same)}",
            second.complete and same,
        ),
    ]


def _same(same: bool) -> str:
    return "identical" if same else "different"


def _replies(path: Path) -> set[str]:
    """The prompts of the replies in the file, as the model logs them."""
    if not path.exists():
        return set()
    with closing(sqlite3.connect(path)) as connection:
        texts = connection.execute("SELECT text FROM replies").fetchall()
    return {text.split()[1] for (text,) in texts}


def _answers(path: Path) -> list[Any]:
    columns = "cell, question, status, text, calls, input_tokens, output_tokens, context_tokens, scores"
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT {columns} FROM answers ORDER BY 1, 2").fetchall()


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kills", type=int, default=KILLS, help="number of kills")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random moments")


if __name__ == "__main__":
    main(run, _add_arguments)
