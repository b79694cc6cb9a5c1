"""What answers scored and took, question by question: scores, tokens, and measured seconds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from math import fsum
from statistics import fmean

from oprag.compare.analysis.settings import HasValues, asks_model
from oprag.compare.measurements import measured_rows
from oprag.compare.reading import KeptAnswer, Results
from oprag.compare.setting import Setting, mean_over
from oprag.compare.table import OF_MODELS, TAKEN
from oprag.errors import OptionError
from oprag.masking import describe

__all__ = ["COSTS", "SECONDS", "Seconds", "check_cost", "read_seconds", "usual_cost", "values_by_question"]

SECONDS = ("seconds", "indexing_seconds", "retrieval_seconds", "generation_seconds")
"""What was measured of time: of retrieval and generation together, and of each phase."""

COSTS = ("tokens", *TAKEN, *SECONDS)
"""What an answer can cost: tokens are those that models read and wrote, together."""

Seconds = Mapping[str, Mapping[str, Mapping[str, float]]]
"""Seconds by the key of the cell, the key of the question, and the phase."""


def check_cost(name: str) -> None:
    """Refuse what is no cost.

    Raises:
        OptionError: It is none.
    """
    if name not in COSTS:
        raise OptionError(f"cost must be one of {', '.join(COSTS)}, got {describe(name)}", name)


def usual_cost(scored: Iterable[HasValues]) -> str:
    """The tokens that settings with scores are held against: those of models, if every setting asks one.

    Else those of the context, which contexts without a model have as well: they do not cost 0.
    """
    return "tokens" if all(map(asks_model, scored)) else "context_tokens"


def read_seconds(results: Results, file: str | os.PathLike[str]) -> Seconds:
    """What was measured of the answers of an experiment; attempts at a question are averaged.

    Args:
        results: The results of the experiment.
        file: The results file.

    Raises:
        ResultsFileError: There is no such file, or it is damaged or another one.
    """
    attempts: dict[tuple[str, str, str], list[float]] = {}
    for row in measured_rows(results, file):
        attempts.setdefault((row.cell, row.question, row.phase), []).append(row.seconds)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for (cell, question, phase), seconds in attempts.items():
        found.setdefault(cell, {}).setdefault(question, {})[phase] = fmean(seconds)
    return found


def values_by_question(setting: Setting, name: str, seconds: Seconds) -> dict[str, float]:
    """The score of a metric, or a cost, of each question by its key; averaged over the cells that are one setting.

    Args:
        setting: The setting.
        name: The name of a metric, or one of `COSTS`.
        seconds: What was measured.

    Returns:
        The value of each question that has one in all cells, and an answer; of seconds, in all cells that were
        measured. Of what a model takes, nothing where none is asked.
    """
    if name in SECONDS:
        measured = [seconds[cell.key] for cell in setting.cells if cell.key in seconds]
        return mean_over([_seconds(one, name) for one in measured])
    if name in ("tokens", *OF_MODELS) and not asks_model(setting):
        return {}
    if name in COSTS:
        return mean_over([_taken(cell.answers, name) for cell in setting.cells])
    return setting.scores(name)


def _taken(answers: Mapping[str, KeptAnswer], name: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for question, answer in answers.items():
        value = answer.input_tokens + answer.output_tokens if name == "tokens" else getattr(answer, name)
        if not answer.failed and value is not None:
            found[question] = float(value)
    return found


def _seconds(measured: Mapping[str, Mapping[str, float]], name: str) -> dict[str, float]:
    wanted = ("retrieval", "generation") if name == "seconds" else (name.removesuffix("_seconds"),)
    return {
        question: fsum(phases[phase] for phase in wanted if phase in phases)
        for question, phases in measured.items()
        if any(phase in phases for phase in wanted)
    }
