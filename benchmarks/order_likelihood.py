"""The likelihood of gold answers after the same chunks in different orders, for several numbers of chunks.

A model with a few hundred million weights is enough. `python -m benchmarks.order_likelihood PART --data FOLDER --model
FOLDER --results FILE` writes a part of docs/benchmarks/order_likelihood.md and resumes an interrupted run. On two
cores, `short` takes about two hours, and `summaries` four.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.machine import machine
from benchmarks.progress import told
from benchmarks.result import Result, Table, markdown, p_value
from benchmarks.windowed_attention import load_windowed
from oprag.compare import Curve, ModelSpec, Results, SettingDifference, SettingSummary, read_data
from oprag.compare.plan import make_plan
from oprag.compare.providers.transformers_likelihood import TransformersLikelihood
from oprag.compare.running.run import run as run_experiment
from oprag.compare.spec.experiment import Experiment
from oprag.compare.stats.summary import Summary

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "order_likelihood.md"
COMMAND = "python -m benchmarks.order_likelihood {} --data FOLDER --model FOLDER --results FILE"
PACKAGES = ("oprag", "torch", "transformers", "wordllama")
METRIC = "answer_likelihood"
SEED = 1
DTYPE = "bfloat16"


@dataclass(frozen=True)
class Part:
    """Questions of one kind, and the experiment with them.

    Attributes:
        title: The title of its section.
        about: A description of the questions and the random order.
        sets: The folders of its data sets, by name.
        sample: The number of sampled questions of each set; None for all.
        grid: The compared settings.
    """

    title: str
    about: str
    sets: Mapping[str, str]
    sample: int | None
    grid: Sequence[Mapping[str, Any]]


PARTS = {
    "summaries": Part(
        "Summaries of meetings",
        "Questions of QMSum (validation and test) whose meetings are in the set: what was said about something. The "
        "gold answer is a summary of a few sentences, whose evidence is in many places. The random order is one "
        "permutation (seed 1).",
        {"meetings": "qmsum"},
        None,
        [
            {"method": METRIC, "order": ["source", "rank", "reverse_rank"], "k": [16, 32]},
            {"method": METRIC, "order": "random", "seed": 1, "k": [16, 32]},
            {"method": "closed_book_likelihood"},
        ],
    ),
    "summaries_64": Part(
        "Summaries of meetings, 64 chunks",
        "Questions of QMSum (validation and test) whose meetings are in the set: what was said about something. The "
        "gold answer is a summary of a few sentences, whose evidence is in many places. The random order is one "
        "permutation (seed 1).",
        {"meetings": "qmsum"},
        None,
        [
            {"method": METRIC, "order": ["source", "rank", "reverse_rank"], "k": 64},
            {"method": METRIC, "order": "random", "seed": 1, "k": 64},
            {"method": "closed_book_likelihood"},
        ],
    ),
    "short": Part(
        "Short answers about stories and contracts",
        "Questions about stories (FairytaleQA) and contracts (CUAD) with short gold answers. The random order is the "
        "mean of two permutations (seeds 1 and 2).",
        {"stories": "fairytaleqa_books", "contracts": "cuad_leval"},
        100,
        [
            {
                "method": METRIC,
                "order": ["source", "rank", "reverse_rank", "random"],
                "seed": [1, 2],
                "k": [4, 8, 16, 32],
            },
            {"method": "closed_book_likelihood"},
        ],
    ),
}


def experiment(part: Part, data: Path, model: Path) -> Experiment:
    """The experiment of a part."""
    sets = {name: read_data(data / folder) for name, folder in part.sets.items()}
    if part.sample is not None:
        sets = {name: one.sample(part.sample, SEED) for name, one in sets.items()}
    loaded, tokenizer = load_windowed(str(model), DTYPE)
    reader = TransformersLikelihood(loaded, tokenizer, name=f"{model.name}, windowed attention")
    return Experiment(
        name=f"order likelihood: {part.title}",
        data=sets,
        models={"reader": ModelSpec(reader, "reader")},
        grid=part.grid,
        metrics=[METRIC, "evidence_coverage"],
        # Each text is read on one core (OMP_NUM_THREADS=1), two concurrently.
        max_concurrency=2,
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog=COMMAND.format("PART"), description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--data", type=Path, required=True, help="folder with a folder for each set")
    parser.add_argument("--model", type=Path, required=True, help="folder of a causal language model")
    parser.add_argument("--results", type=Path, required=True, help="results file")
    parser.add_argument("--about-model", default="", help="description of the model on the page")
    parser.add_argument("--k", type=int, nargs="+", help="numbers of chunks; by default all of the part")
    parser.add_argument("--sample", type=int, help="number of questions of each set; by default that of the part")
    parser.add_argument("--page", type=Path, default=PAGE, help="page with markers for the part")
    options = parser.parse_args()
    part, command = PARTS[options.part], COMMAND.format(options.part)
    if options.k:
        part = replace(part, grid=[{**cell, "k": options.k} if "k" in cell else cell for cell in part.grid])
        command += f" --k {' '.join(map(str, options.k))}"
    if options.sample:
        part = replace(part, sample=options.sample)
        command += f" --sample {options.sample}"
    wanted = experiment(part, options.data, options.model)
    print(make_plan(wanted, options.results).describe(), file=sys.stderr, flush=True)
    print(run_experiment(wanted, options.results, retry_failed=True, on_progress=told()), file=sys.stderr)
    result = _result(part, command, Results.open(options.results, wanted.name), options.about_model)
    begin, end = (f"<!-- {mark} {options.part} -->" for mark in ("begin", "end"))
    before, _, rest = options.page.read_text(encoding="utf-8").partition(begin)
    _, there, after = rest.partition(end)
    if not there:
        sys.exit(f"{options.page} has no markers {begin} and {end}")
    written = "\n\n".join([begin, markdown(result), machine(PACKAGES), end])
    options.page.write_text(before + written + after, encoding="utf-8")
    print(f"wrote {options.page}")


def _result(part: Part, command: str, found: Results, model: str) -> Result:
    by_order = found.differences("order", [METRIC])
    curves = [one for one in found.curves("k", METRIC) if len(one.points) > 1]
    tables = [
        Table(
            "The mean log-probability per token of the gold answer, in nats (higher is better), with 95% bootstrap "
            "intervals; evidence coverage is the same in all orders:",
            ["set", "k", "order", "questions", "failed", "likelihood", "evidence coverage", "context tokens"],
            [_line(row) for row in found.settings],
        ),
        Table(
            "Other orders compared with source order, question by question (negative: source order is better); p "
            "corrected for all comparisons of the experiment:",
            ["set", "k", "order", "difference", "p"],
            [_difference(one) for one in by_order],
        ),
    ]
    if curves:
        rows = [[str(one.values.get("data", "")), str(one.values.get("order", "")), one.describe()] for one in curves]
        tables.append(Table("Curves over k, by order:", ["set", "order", "conclusion"], rows))
    return Result(
        part.title,
        f"{part.about} {_asked(part)} Chunks of 128 tokens, found with the packaged static embedder; the k best of a "
        f"question are the same in every order. The reader is {model or 'the given model'}. It computes the likelihood "
        "of each gold answer after the context and the question; the highest one counts. Closed book is without a "
        f"context. Written by `{command}`.",
        tables=tables,
        notes=[_conclusion(by_order), *([_peaks(curves)] if curves else [])],
    )


def _asked(part: Part) -> str:
    """The sample of a part in words."""
    if part.sample is None:
        return "All questions of the set are asked."
    return f"A random sample of {part.sample} questions of each set is asked (seed {SEED})."


def _conclusion(found: Sequence[SettingDifference]) -> str:
    settled = [one for one in found if one.difference.adjusted_p is not None and one.difference.adjusted_p < 0.05]
    counted = f"{len(settled)} of {len(found)} differences between orders have a corrected p < 0.05."
    return counted if settled else f"**No difference between orders is shown**: {counted}"


def _peaks(curves: Sequence[Curve]) -> str:
    named = [
        f"{one.values.get('data')}, {one.values.get('order')}: k = {one.sweet_spot.value}"
        for one in curves
        if one.sweet_spot is not None
    ]
    if not named:
        return "**No sweet spot is shown**: in no order is one k better than all others."
    return (
        f"**The number of chunks matters**: {len(named)} of {len(curves)} curves over k have a sweet spot "
        f"({'; '.join(named)})."
    )


def _difference(one: SettingDifference) -> list[str]:
    values = one.setting.values
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
