"""The command `oprag sweep`: finds the best token budget and order for a set of questions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import typer

from oprag._internal.masking import describe
from oprag.cli.options import MODEL, Indexing, Running, declare, typed_options
from oprag.errors import OptionError
from oprag.index.tokenizers import LOCAL

__all__ = ["sweep"]

_NONE = "none"
_SEEDS = 1, 2, 3  # of the order random
_COVERAGE = "Without --model, contexts are scored by the evidence in them, of which more text never contains less."


@typed_options(indexed=Indexing, running=Running)
def sweep(
    *,
    indexed: dict[str, Any],
    data: str = typer.Argument(
        help="A folder or file of questions; with --questions, the document that they are about."
    ),
    questions: str | None = declare(
        "Questions about the document DATA: JSON lines with question, answers and evidence."
    ),
    format: str = declare(  # noqa: A002 - what everyone calls it
        "The format of the questions; docs/reference/data_formats.md lists all formats.", default="oprag"
    ),
    sample: int | None = declare("Number of questions to sample at random. Default: all.", min=1),
    budgets: str | None = declare(
        "Token budgets of the context, comma-separated. Default: 1,024 to 49,152 in eight steps, without those smaller "
        "than a chunk and those beyond the documents."
    ),
    orders: str = declare("Orders, comma-separated.", default="source,rank,random"),
    continuity: str = declare("Values of continuity, comma-separated, such as 0,0.3.", default="0"),
    model: str | None = declare(
        "The model that answers: local or PROVIDER:MODEL. Without a model, only the contexts are scored, by the "
        "evidence that they contain.",
        panel=MODEL,
    ),
    metric: str | None = declare("The metric to score. Default: one that suits the questions.", panel=MODEL),
    results: str = declare("The results file; rerun the same command to resume.", default="sweep.db"),
    profile: str = declare(
        "The file to write the setting to deploy to, for from_profile; none writes no file.",
        "--write-profile",
        default="oprag.toml",
    ),
    running: dict[str, Any],
) -> None:
    """Answer questions with each token budget and order, and find the best setting.

    Runs an experiment like oprag compare, with the same output and exit codes, and writes the setting to deploy to a
    profile.
    """
    from oprag.cli.run import run_and_print
    from oprag.compare.data.read import read_data
    from oprag.compare.sweep import sweep_experiment

    how = Running(**running)
    grid: dict[str, Any] = {
        "order": [one.strip() for one in orders.split(",")],
        "seed": list(_SEEDS),
        "continuity": _listed("continuity", continuity, float, "numbers such as 0,0.3"),
        "token_budget": budgets and _listed("budgets", budgets, int, "numbers of tokens such as 1024,16384"),
        **indexed,
    }
    embedder = grid.pop("embeddings", LOCAL)
    others: dict[str, Any] = {} if metric is None else {"metrics": list(dict.fromkeys([metric, "evidence_coverage"]))}
    with redirect_stdout(sys.stderr):
        data_set = read_data(data, format) if questions is None else read_data(questions, format, documents=data)
        experiment = sweep_experiment(
            data_set if sample is None else data_set.sample(min(sample, len(data_set.questions))),
            grid={name: value for name, value in grid.items() if value is not None},
            models={} if model is None else {model: model},
            embedders={embedder: embedder},
            **how.changes(),
            **others,
        )
    run_and_print(
        *(experiment, Path(results), how, metric),
        profile=None if profile == _NONE else profile,
        note=_COVERAGE if model is None else "",
    )


def _listed(name: str, given: str, convert: Callable[[str], float], what: str) -> list[float]:
    try:
        return [convert(one.strip()) for one in given.split(",")]
    except ValueError:
        raise OptionError(f"{name} must be {what}, got {describe(given)}", given) from None
