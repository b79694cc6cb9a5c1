"""The command `oprag sweep`: finds the best token budget and order for a set of questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from oprag._internal.files.writing import check_target
from oprag._internal.masking import describe
from oprag.cli.console import print_status
from oprag.cli.options import (
    MODEL,
    AsJson,
    Everything,
    Indexing,
    LimitCalls,
    LimitTokens,
    MaxConcurrency,
    RetryFailed,
    Yes,
    typed_options,
)
from oprag.errors import OptionError
from oprag.index.tokenizers import LOCAL

__all__ = ["sweep"]

_NONE = "none"
_SEEDS = 1, 2, 3  # of the order random
_COVERAGE = "Without --model, contexts are scored by the evidence in them, of which more text never contains less."


@typed_options(indexed=Indexing)
def sweep(
    indexed: dict[str, Any],
    data: Annotated[
        str, typer.Argument(help="A folder or file of questions; with --questions, the document that they are about.")
    ],
    questions: Annotated[
        str | None,
        typer.Option(help="Questions about the document DATA: JSON lines with question, answers and evidence."),
    ] = None,
    format: Annotated[  # noqa: A002 - what everyone calls it
        str, typer.Option(help="The format of the questions; docs/reference/data_formats.md lists all formats.")
    ] = "oprag",
    sample: Annotated[
        int | None, typer.Option(min=1, help="Number of questions to sample at random. Default: all.")
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            help="Token budgets of the context, comma-separated. Default: 1,024 to 49,152 in eight steps, "
            "without those smaller than a chunk and those beyond the documents."
        ),
    ] = None,
    orders: Annotated[str, typer.Option(help="Orders, comma-separated.")] = "source,rank,random",
    continuity: Annotated[str, typer.Option(help="Values of continuity, comma-separated, such as 0,0.3.")] = "0",
    model: Annotated[
        str | None,
        typer.Option(
            help="The model that answers: local or PROVIDER:MODEL. Without a model, only the contexts are scored, by "
            "the evidence that they contain.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="The metric to score. Default: one that suits the questions.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    results: Annotated[str, typer.Option(help="The results file; rerun the same command to resume.")] = "sweep.db",
    profile: Annotated[
        str,
        typer.Option(
            "--write-profile",
            help="The file to write the setting to deploy to, for from_profile; none writes no file.",
        ),
    ] = "oprag.toml",
    yes: Yes = False,
    retry_failed: RetryFailed = False,
    max_concurrency: MaxConcurrency = 8,
    limit_calls: LimitCalls = None,
    limit_tokens: LimitTokens = None,
    everything: Everything = False,
    as_json: AsJson = False,
) -> None:
    """Answer questions with each token budget and order, and find the best setting.

    Runs an experiment like oprag compare, with the same output and exit codes, and writes the setting to deploy to a
    profile.
    """
    from oprag.cli.run import check_metric, finish, plan_and_run, stdout_to_stderr
    from oprag.compare.data.read import read_data
    from oprag.compare.sweep import sweep_experiment

    grid: dict[str, Any] = {
        "order": [one.strip() for one in orders.split(",")],
        "seed": list(_SEEDS),
        "continuity": _listed("continuity", continuity, float, "numbers such as 0,0.3"),
        "token_budget": budgets and _listed("budgets", budgets, int, "numbers of tokens such as 1024,16384"),
        **indexed,
    }
    embedder = grid.pop("embeddings", LOCAL)
    others: dict[str, Any] = {} if metric is None else {"metrics": list(dict.fromkeys([metric, "evidence_coverage"]))}
    if profile != _NONE:
        read = [results, data] if questions is None else [results, data, questions]
        from oprag.methods.profile import PROFILE

        check_target(profile, *read, kind=PROFILE, advice="name another file with --write-profile, or none")
    with stdout_to_stderr():
        data_set = read_data(data, format) if questions is None else read_data(questions, format, documents=data)
        experiment = sweep_experiment(
            data_set if sample is None else data_set.sample(min(sample, len(data_set.questions))),
            grid={name: value for name, value in grid.items() if value is not None},
            models={} if model is None else {model: model},
            embedders={embedder: embedder},
            limits={"calls": limit_calls, "tokens": limit_tokens},
            max_concurrency=max_concurrency,
            **others,
        )
        check_metric(metric, experiment)
    if model is None and not as_json:
        print_status(_COVERAGE)
    done = plan_and_run(experiment, Path(results), yes=yes, retry_failed=retry_failed)
    finish(done, metric, profile=None if profile == _NONE else profile, everything=everything, as_json=as_json)


def _listed(name: str, given: str, convert: Callable[[str], float], what: str) -> list[float]:
    try:
        return [convert(one.strip()) for one in given.split(",")]
    except ValueError:
        raise OptionError(f"{name} must be {what}, got {describe(given)}", given) from None
