"""A sweep without a model: evidence coverage and inverted pairs of contexts, by order and k."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.result import Figure, Result, Table, main
from oprag.compare import DataSet, Results, SettingSummary, read_data
from oprag.compare.experiment import Experiment
from oprag.compare.running.run import run as run_experiment

SETS = ("fairytaleqa_books", "qmsum", "cuad_leval")
ORDERS = ("source", "rank", "reverse_rank", "edges", "random")
KS = (8, 16, 32, 64, 128)
SEEDS = (1, 2, 3)
QUESTIONS = 500


def run(data: Path, questions: int = QUESTIONS) -> Result:
    """Sweep over the sets."""
    sets = {name: read_data(data / name).sample(questions) for name in SETS}
    # Questions about a whole meeting have no evidence.
    sets = {name: _with_evidence(one) for name, one in sets.items()}
    experiment = Experiment(
        name="orders",
        data=sets,
        grid={"method": "context_only", "search": ["dense", "bm25"], "order": ORDERS, "seed": SEEDS, "k": KS},
        metrics=("evidence_coverage", "inverted_pairs"),
    )
    with TemporaryDirectory() as folder:
        path = Path(folder, "orders.db")
        report = run_experiment(experiment, path)
        rows = Results.open(path, "orders").settings
    counts = ", ".join(f"{name} {len(one.questions):,}" for name, one in sets.items())
    result = Result(
        "Orders without a model",
        f"Questions with evidence: {counts}. The k best chunks of 128 tokens in every order (random with three seeds). "
        "Inverted pairs are the share of the pairs of chunks that are not in document order (0 in source order, 0.5 by "
        "chance). Means over questions.",
    )
    lines = _lines([row for row in rows if row.values["order"] == "rank"])
    result.tables.append(
        Table("Inverted pairs, in rank order:", ["set, search", *(f"k = {k}" for k in KS)], list(lines))
    )
    source = [row.scores["inverted_pairs"] for row in rows if row.values["order"] == "source"]
    result.figures += [
        Figure("Answers", f"{report.total:,}", f"{report.answered:,} in {report.seconds:.0f} s", report.complete),
        Figure(
            "inverted pairs in source order, maximum",
            "none",
            f"{max(one.mean or 0 for one in source):g}",
            all(one.mean == 0 for one in source),
        ),
        Figure("evidence coverage equal in all orders", "equal", *_equal(rows)),
    ]
    result.notes = [f"{'; '.join(f'{one.what}: {one.measured}' for one in result.figures)}."]
    return result


def _with_evidence(data_set: DataSet) -> DataSet:
    questions = [question for question in data_set.questions if question.evidence]
    return DataSet(name=data_set.name, documents=data_set.documents, questions=questions)


def _lines(rows: Iterable[SettingSummary]) -> Iterable[list[str]]:
    """A line for each set and search."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        name = f"{row.values['data']}, {row.values['search']}"
        score = row.scores["inverted_pairs"]
        lines.setdefault(name, [name]).append(f"{score.mean:.3f}")
    return lines.values()


def _equal(rows: Iterable[SettingSummary]) -> tuple[str, bool]:
    means: dict[tuple[object, ...], set[float]] = {}
    for row in rows:
        place = (row.values["data"], row.values["search"], row.values["k"])
        means.setdefault(place, set()).add(round(row.scores["evidence_coverage"].mean or 0.0, 12))
    different = sum(len(found) > 1 for found in means.values())
    return f"{len(means) - different} of {len(means)} settings", not different


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder with a folder for each set")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="maximum number of questions per set")


if __name__ == "__main__":
    main(run, _add_arguments)
