"""Whether oprag's metrics score the predictions published by ∞Bench as its own scorer does."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.result import Figure, Result, Table, main
from oprag.compare.metrics.functions import choice_accuracy, token_f1

FOLDER = "infinitebench_predictions"
OFFICIAL = {
    ("gpt4", "qa"): "22.44",
    ("gpt4", "mc"): "67.25",
    ("kimi", "qa"): "16.52",
    ("kimi", "mc"): "72.49",
}
"""The means × 100 of the official scorer at commit 88b3daa6, by model and task."""

Prediction = tuple[str, list[str]]
"""The answer of a model, and the gold answers."""


def run(data: Path) -> Result:
    """Score every prediction."""
    result = Result(
        "∞Bench scores",
        "Mean × 100 over the predictions published by ∞Bench, with `token_f1` (En.QA) and `choice_accuracy` (En.MC), "
        "and by its own `src/compute_scores.py` at commit 88b3daa6.",
    )
    rows: list[list[str]] = []
    for (model, task), official in OFFICIAL.items():
        predictions = _read(data / FOLDER / f"{model}_en_{task}.jsonl")
        if task == "qa":
            name, scores = "token F1", _mean(token_f1, predictions)
        else:
            name, scores = "accuracy", _mean(choice_accuracy, predictions)
        what = f"{name}, {model} (official script: {official})"
        result.figures.append(Figure(what, official, scores, scores == official))
        rows.append([f"{model}, En.{task.upper()}", f"{len(predictions):,}", scores, official])
    result.tables.append(Table("All predictions:", ["set", "predictions", "score", "official script"], rows))
    return result


def _mean(metric: Callable[[str, Sequence[str]], float], predictions: Sequence[Prediction]) -> str:
    return f"{100 * sum(metric(*prediction) for prediction in predictions) / len(predictions):.2f}"


def _read(path: Path) -> list[Prediction]:
    with path.open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return [(row["prediction"], row["ground_truth"]) for row in rows]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help=f"folder with a folder {FOLDER}")


if __name__ == "__main__":
    main(run, _add_arguments)
