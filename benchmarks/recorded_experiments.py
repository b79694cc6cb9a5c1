"""Results of a fixed set of experiments, one fact per line, to check whether a change of the harness altered any.

    python -m benchmarks.recorded_experiments --write before.jsonl
    python -m benchmarks.recorded_experiments --compare before.jsonl

`--data FOLDER` adds real documents and questions. Everything is read as users read it: from `oprag.compare`, from the
output and the exports of the command line, and from the tables of the report. No network is used.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tomllib
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.recorded_facts import Fact, Place
from benchmarks.recorded_material import (
    MENDED,
    Set,
    chronicles,
    mixed,
    read_real,
    shortened,
    write_plain,
    write_published,
)
from oprag.compare import Results, compare
from oprag.compare.metrics.registry import METRICS

MEANT: dict[str, str] = {
    **{
        f"* / *{where}: {field}": "Answers have the fields of their questions."
        for where in ("answer", "answers.*")
        for field in (
            *("evidence_spans", "spread", "type", "note", "contexts", "contexts_found", "difficult", "kind"),
            *("meta_info", "query_by", "question_type", "split"),
        )
    },
    "*.report.running": "A report is that of a run in progress, too, which has calls in flight.",
    "*broken": "Stored answers are not verified beyond their types and references.",
    "*.same": "A failure tells how often its message occurred.",
    "*.exhausted": "No curve says whether its largest value reads everything.",
    "measured / *": "Answers are measured in this process, once each, and calls are shared.",
    "* / *plan*.measured": "Measuring makes the calls of any other run, so a plan says nothing of it.",
    "* / *answers.*: columns": "Answers have the fields of their questions.",
    "*.scorable.*": "Nothing is said to be missing where a metric needs nothing.",
    "*.other_fields.*": "Unknown fields of records are in `about`, and not listed beside it.",
    "limits / * columns": "Settings whose model has a price have a column of money.",
    "limits / * row: money": "Settings whose model has a price have a column of money.",
    "limits / *.per_answer.money": "Settings whose model has a price have a column of money.",
    "* report: In short: *": "The first screen of the report has a forest plot with its figures.",
    "* report: All settings: *": "A setting has its name in one column, and its difference beside its score.",
    "* report: What differs, question by question: *": "The section is now called: All differences by axis.",
    "* report: All differences by axis: *": "Pairs without any difference are counted, and controls folded.",
    "* report: All differences: *": "The section was called: All differences by axis.",
    "* report: Where order matters: *": "A new section has the differences for fields of the questions.",
    "* report: What was run: *": "The section is now called: Run details.",
    "* report: Run details: *": "The section was called: What was run. What is missing is on the first screen.",
    "* report: Score over the length of the context: *": "The section is now called: Score over context length.",
    "* report: Score over context length: *": "The section was called: Score over the length of the context.",
    "* report: Score against tokens and time: *": "The section is now called: Score against cost.",
    "* report: Score against cost: *": "The section was called: Score against tokens and time.",
    "* report: Thresholds: *": "Thresholds are among the tables of two axes.",
    "* report: Two axes at a time: *": "Pairs are those that papers print, and the two thresholds.",
    "* report: With and without thresholds: *": "The figures are among all settings and all differences.",
    "* report: Self-Route: *": "How often its first step was enough is a column of what settings used.",
    "* report: Retrieval against whole documents: *": "The section is now called: Retrieval vs. whole documents.",
    "* report: Retrieval vs. whole documents: *": "The section is gone: the differences by axis have its pairs.",
    "sweep * / *oprag sweep: *": "The JSON of a sweep is that of any comparison.",
    "sweep * / *columns": "The number of candidates comes before the axes that are given.",
    "sweep * / *profile: .about.*": "The notes of a profile are those of any comparison.",
    "sweep * / *profile: .context.k": "A profile has the number of candidates of the sweep.",
    "*front of *": "Pareto fronts are in the report alone.",
    "*: figures": "The best setting is described with the closest other alone.",
    "likelihoods / *": "The likelihood of gold answers is no metric of an experiment.",
    "*answer_likelihood*": "The likelihood of gold answers is no metric of an experiment.",
    "sweep answers / *model": "A model on the command line is one of a provider.",
    "sweep answers / *.models.*": "A model on the command line is one of a provider.",
    "*.addresses": "A plan names no addresses.",
    "*.address": "A plan names no addresses.",
    "*at 80 %: *": "Intervals are those of 95 %.",
    "*frame: columns": "Frames have the types that pandas infers.",
    "*.conclusion": "Curves are described in the words of the best setting.",
    "*.about.curves": "Curves are described in the words of the best setting.",
    "sweep * / *.reason": "The reason for a setting that is chosen is shorter.",
    "sweep * / *.about.chosen": "The reason for a setting that is chosen is shorter.",
    "*.power*": "The JSON of a plan says how small a difference its questions can show.",
}
"""Intended differences: a pattern of facts, as --compare prints them, and the reason."""

METHODS = ("stuff", "map_reduce", "refine", "map_rerank", "step_down", "reciprocal", "long_context", "self_route")
MATERIAL = "benchmarks.recorded_material"
MODELS = {
    "reader": {"use": f"{MATERIAL}:reader"},
    "lost": {"use": f"{MATERIAL}:lost"},
    "faulty": {"use": f"{MATERIAL}:faulty"},
}
EMBEDDERS = {"packaged": {"use": "local"}, "words": {"use": f"{MATERIAL}:words"}}
PACKAGES = {"chroma": "langchain_chroma", "faiss": "faiss", "qdrant": "langchain_qdrant", "lancedb": "lancedb"}
STORES = ["index", "in_memory", "mine", *(name for name, package in PACKAGES.items() if find_spec(package))]
SMALL: dict[str, Any] = {"chunk_size": 32, "k": 6}
ORDERS: dict[str, Any] = {"order": ["source", "rank"]}
RUN = ("--yes", "--json")
Data = Mapping[str, Mapping[str, Any]]

AXES: tuple[dict[str, Any], ...] = (
    {"data": ["chronicles", "mixed"], "repeat": [1, 2]},
    {"splitter": ["tokens", "words", "recursive"]},
    {"chunk_size": [24, 48], "chunk_overlap": [0, 8]},
    {"embedder": ["packaged", "words"]},
    {"search": ["dense", "bm25", "hybrid"]},
    {"store": STORES},
    {"model": ["reader", "lost"]},
    {"k": [2, 6, 20], "max_candidates": ["none", 24]},
    {"k": 20, "token_budget": [100, 400]},
    {"order": ["source", "rank", "reverse_rank", "edges", "random"], "seed": [1, 2]},
    {"data": "mixed", "source_ranking": ["best_first", "best_last", "score_sum", "name"]},
    {"on_missing_position": ["last", "first", "drop", "error"], "position_key": ["none", "elsewhere"]},
    {"data": "mixed", "source_key": ["none", "source", "elsewhere"], "position_key": ["none", "chunk_index"]},
    {"similarity_threshold": ["none", 0.3, 0.6], "redundancy_threshold": ["none", 0.5], "min_chunks": [0, 2]},
    {"neighbors": [0, 1, 2], "stitch": [True, False]},
    {"separator": ["\n\n", " | "], "gap": ["none", "[...]"], "header": ["none", "[{number}] {source} {start}-{end}"]},
    {"method": ["step_down", "reciprocal"], "inner_method": ["stuff", "refine"], "variants": [2, 4]},
    {"method": ["map_reduce", "refine", "map_rerank"], "passage_tokens": [40, 200], "k": 16},
    {"method": "map_reduce", "passage_tokens": 40, "collapse_tokens": ["none", 60], "k": 16},
    {"method": "map_rerank", "rank_by": ["confidence", "cosine"]},
    {"method": "reciprocal", "answer_threshold": [0.2, 0.9]},
    {"method": ["long_context", "self_route"], "source_token_budget": [300], "overflow": ["error", "truncate_middle"]},
    {"method": "long_context", "source_token_budget": [300], "overflow": "truncate_end"},
    {"cite": [True, False], "method": ["stuff", "map_reduce"]},
    {"similarity_threshold": 0.99, "empty_answer": ["Nothing was found.", "?"]},
)
"""A grid with some values of each axis."""


# The experiments.


def recorded(folder: Path, data: Path | None) -> Iterator[Fact]:
    """All facts."""
    sets = {"chronicles": write_plain(folder / "c", chronicles()), "mixed": write_plain(folder / "m", mixed())}
    for name, table in sets.items():
        yield from Place(folder, f"data {name}").data_set(table)
    few = {"chronicles": {**sets["chronicles"], "sample": 10}, "mixed": sets["mixed"]}
    steps: list[tuple[Callable[..., Iterator[Fact]], Any]] = [
        (axes, few),
        (methods, {"chronicles": {**sets["chronicles"], "sample": 14}}),
        (curves, {"chronicles": sets["chronicles"]}),
        (kinds, {"mixed": sets["mixed"]}),
        (failures, few),
        (limits, few),
        (sweeps, sets["chronicles"]["path"]),
        (measured, {"mixed": {**sets["mixed"], "sample": 3}}),
        *([(on_ray, few)] if find_spec("ray") else []),
        (generated, shortened(chronicles())),
        *([(real, data)] if data is not None else []),
    ]
    for step, given in steps:
        try:
            yield from step(folder, given)
        except Exception:  # noqa: BLE001 - what the others find is wanted all the same
            traceback.print_exc()
            yield Fact(step.__name__, "", "", "error", "this step raised an error")


def place_of(folder: Path, name: str, **described: Any) -> Place:
    """A place for an experiment with the models and embedders of this benchmark."""
    metrics = [name for name in METRICS if name not in ("recall", "mrr", "ndcg")]
    return Place(folder, name, **{"models": MODELS, "embedders": EMBEDDERS, "metrics": metrics, **described})


def again(what: str, facts: Iterable[Fact]) -> Iterator[Fact]:
    """Label facts of the same experiment at another time."""
    return (fact._replace(what=f"{what} {fact.what}") for fact in facts)


def axes(folder: Path, data: Data) -> Iterator[Fact]:
    """Every axis, with a few values."""
    for number, grid in enumerate(AXES):
        full = {"data": "chronicles", **SMALL, **grid}
        stores = {"mine": f"{MATERIAL}:store"}
        place = place_of(folder, f"axes {number}", data=data, stores=stores, grid=full)
        results = compare(place.experiment, place.results)
        yield from place.ran(results.run)
        yield from place.all_of(results, judged=["token_f1"], exported=("settings",))


def methods(folder: Path, data: Data) -> Iterator[Fact]:
    """Every method and control on the command line: planned, run, run again and reported."""
    grid = {"method": [*METHODS, "closed_book", "context_only"], **ORDERS, **SMALL, "variants": 2, "passage_tokens": 60}
    scored = {**EMBEDDERS["words"], "name": "words"}
    place = place_of(folder, "methods", data=data, grid=grid, count_tokens="words", score_embedder=scored)
    yield from place.oprag("compare", place.file, "--plan", "--json")
    yield from place.oprag("compare", place.file, *RUN, "--csv", place.folder / "settings.csv")
    yield from place.exported("settings")
    results = compare(place.experiment, place.results)
    yield from place.ran(results.run)
    yield from again("again", place.all_of(results, judged=["rouge_l"]))
    yield from place.reported()


def curves(folder: Path, data: Data) -> Iterator[Fact]:
    """Curves over k and thresholds, with bands, sweet spots, fronts, and parts of them."""
    orders = {"order": ["source", "rank", "random"], "seed": [1, 2, 3], "k": [2, 4, 8, 16, 32]}
    thresholds = {"similarity_threshold": [0.1, 0.3, 0.5], "redundancy_threshold": ["none", 0.6], "k": 16}
    whole = {"method": ["stuff", "long_context"], "k": [4, 8, 16]}
    for name, grid, part in (
        ("orders", orders, {"k": [4, 16], "order": ["source", "rank"]}),
        ("thresholds", thresholds, {"similarity_threshold": [0.1, 0.5]}),
        ("whole", whole, {"k": [4, 8]}),
    ):
        metrics = ["rouge_l", "token_f1", "inverted_pairs"]
        place = place_of(folder, f"curves {name}", data=data, grid={"chunk_size": 32, **grid}, metrics=metrics)
        results = compare(place.experiment, place.results)
        yield from place.all_of(results, judged=results.metrics, exported=("settings",))
        yield from place.reported("--metric", "token_f1")
        yield from again("where", place.judged(results.where(**part), "rouge_l"))


def kinds(folder: Path, data: Data) -> Iterator[Fact]:
    """Choices, citations, several documents and gold answers, without gold, asked twice; other prompts."""
    grid = {**SMALL, "method": ["stuff", "map_reduce", "self_route"], "cite": [True, False], "header": "[{number}]"}
    for name, prompts in {"ours": {}, "other": {"answer": "{context}\n\n{question} {choices}"}}.items():
        place = place_of(folder, f"kinds {name}", data=data, grid=grid, prompts=prompts)
        yield from place.all_of(compare(place.experiment, place.results), judged=["token_f1", "choice_accuracy"])
        yield from place.reported()


def failures(folder: Path, data: Data) -> Iterator[Fact]:
    """Calls that fail, are truncated or return nothing; then the failed ones are retried."""
    grid = {**SMALL, **ORDERS, "method": ["stuff", "refine", "map_reduce"], "passage_tokens": 60, "model": "faulty"}
    # With concurrent calls, the number of calls before a failure would be random.
    place = place_of(folder, "failures", data=data, grid=grid, max_concurrency=1)
    yield from place.oprag("compare", place.file, *RUN)
    yield from place.all_of(Results.open(place.results), judged=["token_f1"])
    yield from place.reported()
    os.environ[MENDED] = "1"
    results = compare(place.experiment, place.results, retry_failed=True)
    del os.environ[MENDED]
    yield from again("mended", (*place.ran(results.run), *place.all_of(results, exported=())))


def limits(folder: Path, data: Data) -> Iterator[Fact]:
    """A run that is stopped by each limit in turn; then the rest."""
    prices = {model: {"input": 2.0, "output": 8.0, "cached": 0.5} for model in MODELS}
    grid = {**SMALL, "method": ["stuff", "refine"], "model": ["reader", "lost"], "passage_tokens": 60}
    place = place_of(folder, "limits", data=data, grid=grid, prices=prices, max_concurrency=1)
    for limit in (("--limit-calls", 10), ("--limit-tokens", 9_000), ("--limit-money", 0.04), ()):
        facts = [*place.oprag("compare", place.file, *RUN, *limit)]
        facts += place.all_of(Results.open(place.results), exported=())
        yield from again(" ".join(map(str, limit or ["no limit"])), facts)


def sweeps(folder: Path, path: str) -> Iterator[Fact]:
    """Sweeps with and without a model, and the profiles they write."""
    for name, model in {"contexts": [], "answers": ["--model", "ollama:lost", "--metric", "rouge_l"]}.items():
        place = Place(folder, f"sweep {name}", axes=["order", "token_budget", "seed"])
        profile = place.folder / "oprag.toml"
        how = ["--budgets", "30,60,120,240,1024,2048", "--chunk-size", 32, "--yes", "--json"]
        yield from place.oprag("sweep", path, *model, *how, "--results", place.results, "--write-profile", profile)
        if profile.exists():
            yield from place.placed("profile", tomllib.loads(profile.read_text(encoding="utf-8")))
        yield from place.all_of(Results.open(place.results), exported=("settings",))


def measured(folder: Path, data: Data) -> Iterator[Fact]:
    """A measured run."""
    grid = {**SMALL, **ORDERS, "method": ["stuff", "context_only"]}
    place = place_of(folder, "measured", data=data, grid=grid, metrics=["token_f1"])
    yield from place.oprag("compare", place.file, "--measure", *RUN)
    yield from place.all_of(Results.open(place.results))


def on_ray(folder: Path, data: Data) -> Iterator[Fact]:
    """A run on Ray workers."""
    grid = {**SMALL, **ORDERS, "method": ["stuff", "map_reduce"]}
    place = place_of(folder, "ray", data=data, grid=grid, metrics=["token_f1", "evidence_coverage"])
    yield from place.oprag("compare", place.file, "--ray", "local", *RUN)
    yield from place.all_of(Results.open(place.results), judged=["token_f1"])


def generated(folder: Path, given: Set) -> Iterator[Fact]:
    """A generated set in all published layouts."""
    yield from published(folder, "generated", write_published(folder / "published", given))


def published(folder: Path, name: str, data: Data) -> Iterator[Fact]:
    """Every format of data sets."""
    for kind, table in data.items():
        yield from Place(folder, f"data {name} {kind}").data_set(table)
    place = place_of(folder, f"published {name}", data=data, grid={**ORDERS, "k": 4, "data": [*data]})
    yield from place.all_of(compare(place.experiment, place.results), judged=["token_f1"])


def real(folder: Path, data: Path) -> Iterator[Fact]:
    """A few questions of each set of a folder, and the start of some sets in all published layouts."""
    found = {path.parent.name: read_real(path.parent, 3) for path in sorted(data.glob("*/documents.jsonl.gz"))}
    plain = {name: write_plain(folder / f"real-{name}", given) for name, given in found.items()}
    yield from published(folder, "real", plain)
    for name in ("narrativeqa_books", "qmsum", "quality_leval"):
        if name in found:
            layouts = write_published(folder / f"layouts-{name}", shortened(found[name]))
            yield from published(folder, name, layouts)


# Writing and comparing.


def same(first: Any, second: Any) -> bool:
    """Return whether two values are equal, numbers within 1e-12."""
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (first, second))
    return math.isclose(first, second, rel_tol=1e-12, abs_tol=1e-12) if numbers else bool(first == second)


def facts_by_key(rows: Iterable[Fact]) -> dict[str, Any]:
    """Return the values by key."""
    found: dict[str, Any] = {}
    for fact in rows:
        if fact.key in found:
            raise ValueError(f"two facts with the key {fact.key}")
        found[fact.key] = fact.value
    return found


def compared(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Print unintended differences, and return whether there are none."""
    lists: dict[str, Sequence[str]] = {
        "differ": [key for key in before if key in now and not same(before[key], now[key])],
        "missing": [key for key in before if key not in now],
        "new": [key for key in now if key not in before],
    }
    counts = []
    for kind, keys in lists.items():
        told = [key for key in keys if not any(fnmatchcase(key, pattern) for pattern in MEANT)]
        for key in told[:40]:
            values = f": {json.dumps(before[key])[:120]} -> {json.dumps(now[key])[:120]}" if kind == "differ" else ""
            print(f"{kind}: {key}{values}")
        counts.append(
            f"{len(told):,} {kind}" + (f" (and {meant:,} on purpose)" if (meant := len(keys) - len(told)) else "")
        )
        lists[kind] = told
    print(f"compared {len(before.keys() & now.keys()):,} values: {', '.join(counts)}")
    return not any(lists.values())


def main() -> None:
    """Record, or compare with a record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of question sets, as for recorded_contexts")
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--write", type=Path)
    group.add_argument("--compare", type=Path)
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        rows = list(recorded(Path(folder), given.data))
    now = facts_by_key(rows)
    if given.write:
        given.write.write_text("".join(f"{json.dumps(row._asdict())}\n" for row in rows), encoding="utf-8")
        print(f"recorded {len(now):,} values")
        return
    lines = given.compare.read_text(encoding="utf-8").splitlines()
    before = facts_by_key(Fact(**json.loads(line)) for line in lines)
    sys.exit(not compared(before, {key: json.loads(json.dumps(value)) for key, value in now.items()}))


if __name__ == "__main__":
    main()
