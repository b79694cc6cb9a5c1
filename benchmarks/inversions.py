"""Pairs of retrieved chunks in the wrong order, through both frameworks with their default and other splitters.

The true order is known because the documents are split here: a table outside the store maps each id to the position of
its chunk. Nothing that orders the chunks sees this table.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
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
    kinds: Counter[str] = field(default_factory=Counter)
    chunks: int = 0
    missing: int = 0

    def add(self, answer: Answer) -> None:
        """Count the pairs of one answer."""
        self.inverted += sum(first > second for first, second in combinations(answer.ordinals, 2))
        self.total += len(answer.ordinals) * (len(answer.ordinals) - 1) // 2
        for report in answer.sources:
            # For the order of a store, without the number of overlapping neighbors.
            read_from = f" ({report.field.partition(', ')[0]})" if report.field else ""
            self.kinds[f"{report.kind.value} {report.kind.name.lower()}{read_from}"] += 1
            self.chunks += report.chunks
            self.missing += report.missing

    def include(self, other: Pairs) -> None:
        """Add the pairs that the other has counted."""
        self.inverted += other.inverted
        self.total += other.total

    @property
    def share(self) -> str:
        """The percentage of inverted pairs; a plain 0 only if there are none."""
        if not self.total:
            return "-"
        return f"{100 * self.inverted / self.total:.1f} %" if self.inverted else "0"

    @property
    def known_by(self) -> str:
        """The kinds of position, most frequent first, and the share of chunks without one."""
        kinds = "; ".join(kind for kind, _ in self.kinds.most_common())
        return kinds + (f", {100 * self.missing / self.chunks:.0f} % of the chunks without" if self.missing else "")


def run(data: Path, questions: int = QUESTIONS) -> Result:
    """Count inverted pairs on every set, through every framework and splitter."""
    embedder = LocalEmbedder()
    frameworks: list[Framework] = [LangChain(embedder), LlamaIndex(embedder)]
    result = Result(
        "Inverted pairs",
        f"Pairs of chunks of one document in the wrong order, for up to {questions} questions per set and up to {K} "
        "chunks per question: in rank order; in source order, with the positions that the splitter and the store "
        "leave, and the kind of these positions; in source order, stamped at ingestion; in source order, located in "
        "the text afterwards by updating only the metadata; and in source order over Qdrant, which keeps no order, "
        "without offsets and with `read_source=`. Chunks with equal text are interchangeable.",
    )
    sets = {name: read_set(data / name, questions) for name in SETS if (data / name).is_dir()}
    with warnings.catch_warnings():
        # One column shows the result without any position.
        warnings.simplefilter("ignore", PositionWarning)
        for framework in frameworks:
            _add(result, framework, sets)
    return result


def _add(result: Result, framework: Framework, sets: Mapping[str, DataSet]) -> None:
    rows: list[list[str]] = []
    unplaced = retrieved = 0
    asked = {
        (splitters, condition): Pairs()
        for splitters in (DEFAULT, OTHERS)
        for condition in (*((AS_SPLIT, BY_TEXT) if splitters == DEFAULT else ()), STAMPED, LOCATED)
    }
    for splitter in framework.splitters:
        for name, (texts, questions) in sets.items():
            pairs = _count(framework, splitter, texts, questions)
            kind = DEFAULT if splitter == DEFAULT else OTHERS
            for condition in (AS_SPLIT, STAMPED, LOCATED, BY_TEXT):
                if (kind, condition) in asked:
                    asked[kind, condition].include(pairs[condition])
            shares = [pairs[condition].share for condition in (RANK, AS_SPLIT, STAMPED, LOCATED, BY_TEXT)]
            rows.append([splitter, name, f"{pairs[RANK].total:,}", *shares, pairs[AS_SPLIT].known_by])
            unplaced += pairs[BY_TEXT].missing
            retrieved += pairs[BY_TEXT].chunks
    result.tables.append(
        Table(
            f"{framework.name}:",
            ["splitter", "set", "pairs", "rank order", "as split", "stamped", "located", BY_TEXT, "kind as split"],
            rows,
        )
    )
    for (splitters, condition), sum_of in asked.items():
        if not sum_of.total:
            continue
        what = f"inverted pairs through {framework.name}, {splitters}, {condition}"
        result.figures.append(Figure(what, "0", f"{sum_of.inverted} of {sum_of.total:,}", not sum_of.inverted))
    note = f"{framework.name}: {framework.note}"
    if unplaced:
        note += (
            f" Over Qdrant, {unplaced:,} of {retrieved:,} retrieved chunks have no position, because their text occurs "
            "several times in the document; they come last, with a warning."
        )
    result.notes.append(note)


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
