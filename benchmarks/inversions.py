"""Pairs of retrieved chunks in the wrong order, through both frameworks with their default and other splitters.

The true order is known because the documents are split here: a table outside the store maps each id to the position of
its chunk. Nothing that orders the chunks sees this table.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from benchmarks.data_sets import DataSet, Question, read_set
from benchmarks.inversions_langchain import LangChain
from benchmarks.inversions_llama_index import LlamaIndex
from benchmarks.ordering import AS_SPLIT, BY_TEXT, DEFAULT, LOCATED, RANK, STAMPED, Answer, Framework, K
from benchmarks.result import Figure, Result, Table, main
from oprag import LocalEmbedder
from oprag.errors import PositionWarning

SETS = ("qmsum", "chroma_spans", "fairytaleqa_books", "cuad_leval")
QUESTIONS = 25
OTHERS = "other splitters"


@dataclass
class Pairs:
    """Pairs of chunks of one document that were retrieved for one question, summed over many questions."""

    inverted: int = 0
    total: int = 0
    chunks: int = 0
    missing: int = 0

    def add(self, answer: Answer) -> None:
        """Count the pairs of one answer."""
        self.inverted += sum(first > second for first, second in combinations(answer.ordinals, 2))
        self.total += len(answer.ordinals) * (len(answer.ordinals) - 1) // 2
        for report in answer.sources:
            self.chunks += report.chunks
            self.missing += report.missing

    def include(self, other: Pairs) -> None:
        """Add the pairs that the other has counted."""
        self.inverted += other.inverted
        self.total += other.total


def _range(sets: Sequence[Pairs]) -> str:
    """The smallest and the largest percentage of inverted pairs; a plain 0 only if there are none."""
    shares = [100 * one.inverted / one.total for one in sets if one.total]
    if not shares:
        return "-"
    low, high = (f"{share:.1f}" if share else "0" for share in (min(shares), max(shares)))
    return f"{low} to {high} %" if high != "0" else "0"


def run(data: Path, questions: int = QUESTIONS) -> Result:
    """Count inverted pairs on every set, through every framework and splitter."""
    embedder = LocalEmbedder()
    frameworks: list[Framework] = [LangChain(embedder), LlamaIndex(embedder)]
    result = Result(
        "Inverted pairs",
        f"Pairs of chunks of one document in the wrong order (minimum to maximum over the sets {', '.join(SETS)}), for "
        f"up to {questions} questions per set and {K} chunks per question: in rank order; in source order with the "
        "positions that the splitter and the store leave; stamped at ingestion; located in the text afterwards with "
        "`write_positions`; and over Qdrant with `read_source=`.",
    )
    sets = {name: read_set(data / name, questions) for name in SETS if (data / name).is_dir()}
    with warnings.catch_warnings():
        # One column shows the result without any position.
        warnings.simplefilter("ignore", PositionWarning)
        rows = [row for framework in frameworks for row in _add(result, framework, sets)]
    head = ["splitter", "pairs", "rank order", "as split", "stamped", "located", BY_TEXT]
    result.tables.append(Table("Inverted pairs:", head, rows))
    return result


def _add(result: Result, framework: Framework, sets: Mapping[str, DataSet]) -> Iterable[list[str]]:
    rows: list[list[str]] = []
    unplaced = retrieved = 0
    asked = {
        (splitters, condition): Pairs()
        for splitters in (DEFAULT, OTHERS)
        for condition in (*((AS_SPLIT, BY_TEXT) if splitters == DEFAULT else ()), STAMPED, LOCATED)
    }
    for splitter in framework.splitters:
        of_sets: list[dict[str, Pairs]] = []
        for texts, questions in sets.values():
            pairs = _count(framework, splitter, texts, questions)
            of_sets.append(pairs)
            kind = DEFAULT if splitter == DEFAULT else OTHERS
            for condition in (AS_SPLIT, STAMPED, LOCATED, BY_TEXT):
                if (kind, condition) in asked:
                    asked[kind, condition].include(pairs[condition])
            unplaced += pairs[BY_TEXT].missing
            retrieved += pairs[BY_TEXT].chunks
        shares = [
            _range([one[condition] for one in of_sets]) for condition in (RANK, AS_SPLIT, STAMPED, LOCATED, BY_TEXT)
        ]
        rows.append([f"{framework.name}, {splitter}", f"{sum(one[RANK].total for one in of_sets):,}", *shares])
    for (splitters, condition), sum_of in asked.items():
        if not sum_of.total:
            continue
        what = f"inverted pairs through {framework.name}, {splitters}, {condition}"
        result.figures.append(Figure(what, "0", f"{sum_of.inverted} of {sum_of.total:,}", not sum_of.inverted))
    if unplaced:
        result.notes.append(
            f"Over Qdrant, {unplaced:,} of {retrieved:,} retrieved chunks have no position, because their text occurs "
            "several times in the document; they come last, with a warning."
        )
    return rows


def _count(
    framework: Framework, splitter: str, texts: Mapping[str, str], questions: Iterable[Question]
) -> dict[str, Pairs]:
    pairs = {condition: Pairs() for condition in (RANK, AS_SPLIT, STAMPED, LOCATED, BY_TEXT)}
    ways: dict[str, Mapping[str, Callable[[str], Answer]]] = {}
    for question in questions:
        name = question.document_id
        if name not in ways:
            ways[name] = framework.index(splitter, name, texts[name])
        for condition, ask in ways[name].items():
            pairs[condition].add(ask(question.text))
    return pairs


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder with a folder for each set")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="maximum number of questions per set")


if __name__ == "__main__":
    main(run, _add_arguments)
