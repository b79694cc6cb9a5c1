"""How likely gold answers are behind the same chunks in other orders, over budgets; a model of a few hundred million
weights is enough for that.

`python -m benchmarks.order_likelihood --data FOLDER --model FOLDER --results FILE` writes docs/order_likelihood.md. It
takes about two hours on two cores, and goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.progress import told
from benchmarks.result import Result, Table, markdown, p_value
from oprag.compare import Curve, Results, SettingDifference, SettingSummary
from oprag.compare.data import read_data
from oprag.compare.running.plan import make_plan
from oprag.compare.running.run import run as run_experiment
from oprag.compare.spec.experiment import Experiment
from oprag.compare.stats.summary import Summary

OUTPUT = Path(__file__).parent.parent / "docs" / "order_likelihood.md"
COMMAND = "python -m benchmarks.order_likelihood --data FOLDER --model FOLDER --results FILE"
PACKAGES = ("oprag", "torch", "transformers", "wordllama")
SETS = {"stories": "fairytaleqa_books", "contracts": "cuad_leval"}
QUESTIONS, SEED = 100, 1
METRIC = "answer_likelihood"


def experiment(data: Path, model: Path) -> Experiment:
    """What is run."""
    return Experiment(
        name="order likelihood",
        data={name: read_data(data / folder).sample(QUESTIONS, SEED) for name, folder in SETS.items()},
        models={"reader": {"use": f"transformers:{model}", "dtype": "bfloat16"}},
        grid=[
            {
                "method": METRIC,
                "order": ["source", "rank", "reverse_rank", "random"],
                "seed": [1, 2],
                "k": [4, 8, 16, 32],
            },
            {"method": "closed_book_likelihood"},
        ],
        metrics=[METRIC, "evidence_coverage"],
        # The model reads one text at a time, on all cores.
        max_concurrency=1,
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="a folder with a folder for each set")
    parser.add_argument("--model", type=Path, required=True, help="the folder of a causal language model")
    parser.add_argument("--results", type=Path, required=True, help="the results file")
    parser.add_argument("--about-model", default="", help="what the document says of the model")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    wanted = experiment(options.data, options.model)
    print(make_plan(wanted, options.results).describe(), file=sys.stderr, flush=True)
    print(run_experiment(wanted, options.results, retry_failed=True, watch=told()), file=sys.stderr)
    parts = [
        f"<!-- Written by `{COMMAND}`; change the benchmark, not this file. -->",
        markdown(_result(wanted, options.results, options.about_model)).replace("## ", "# ", 1),
        machine(PACKAGES),
    ]
    options.output.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"wrote {options.output}")


def _result(wanted: Experiment, results: Path, model: str) -> Result:
    found = Results.open(results, wanted.name)
    rows = found.settings
    by_order = found.differences("order", [METRIC])
    curves = found.curves("k", METRIC)
    tables = [
        Table(
            "The mean log-probability of a token of the gold answer, in nats (higher is better), with 95 % intervals "
            "of the bootstrap; evidence coverage is the same in all orders:",
            ["set", "k", "order", "questions", "failed", "likelihood", "evidence coverage", "context tokens"],
            [_line(row) for row in rows],
        ),
        Table(
            "Other orders beside that of the source, question by question (negative: the source's order is better); p "
            "corrected for all comparisons of the experiment. The random order is the mean of two permutations:",
            ["set", "k", "order", "difference", "p"],
            [_difference(one) for one in by_order],
        ),
        Table(
            "Over k, in each order:",
            ["set", "order", "what can be said"],
            [[str(one.values.get("data", "")), str(one.values.get("order", "")), one.describe()] for one in curves],
        ),
    ]
    return Result(
        "Order and budget by the likelihood of gold answers",
        f"{QUESTIONS} questions about stories (FairytaleQA) and {QUESTIONS} about contracts (CUAD), random samples "
        f"of the seed {SEED}. Chunks of 128 tokens by the packaged static embedder; the k best of a question are the "
        f"same in every order. The reader: {model or 'the given model'}. It says how likely it finds each gold answer "
        "behind the context and the question; the best one counts. Closed book is without a context. "
        f"Written by `{COMMAND}`.",
        tables=tables,
        notes=[_conclusion(by_order), _peaks(curves)],
    )


def _conclusion(found: Sequence[SettingDifference]) -> str:
    settled = [one for one in found if one.difference.adjusted_p is not None and one.difference.adjusted_p < 0.05]
    if not settled:
        return (
            f"**No difference between orders can be claimed**: of {len(found)} differences none has a "
            "corrected p < 0.05."
        )
    told_of = "; ".join(
        f"{one.values.get('data')}, k = {one.values.get('k')}: {one.value} − {one.baseline_value} "
        f"{one.difference.describe()}, p = {p_value(one.difference.adjusted_p)}"
        for one in settled
    )
    return f"{len(settled)} of {len(found)} differences between orders have a corrected p < 0.05: {told_of}."


def _peaks(curves: Sequence[Curve]) -> str:
    named = [
        f"{one.values.get('data')}, {one.values.get('order')}: k = {one.sweet_spot.value}"
        for one in curves
        if one.sweet_spot is not None
    ]
    if not named:
        return "**No sweet spot can be named**: in no order is one k shown to be better than all others."
    return (
        f"**The number of chunks makes a difference**: {len(named)} of {len(curves)} curves over k have a sweet spot "
        f"({'; '.join(named)}); what can be said of the others is in the last table."
    )


def _difference(one: SettingDifference) -> list[str]:
    values = one.values
    return [
        str(values.get("data", "")),
        str(values.get("k", "")),
        f"{one.value} − {one.baseline_value}",
        one.difference.describe(),
        p_value(one.difference.adjusted_p),
    ]


def _line(row: SettingSummary) -> list[str]:
    values = row.values
    tokens = row.per_answer.get("context_tokens")
    return [
        str(values.get("data", "")),
        str(values.get("k", "–")),
        str(values.get("order", "closed book")),
        str(row.scores[METRIC].n if METRIC in row.scores else 0),
        str(row.failed),
        _shown(row.scores.get(METRIC)),
        _shown(row.scores.get("evidence_coverage")),
        "–" if tokens is None else f"{tokens:,.0f}",
    ]


def _shown(one: Summary | None) -> str:
    return "–" if one is None or one.mean is None else f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"


if __name__ == "__main__":
    main()
