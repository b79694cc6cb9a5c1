"""The share of the evidence in the retrieved chunks, by search and k."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import DataSet, Question, read_set
from benchmarks.minilm import minilm
from benchmarks.result import Result, Table, main
from oprag import DocumentIndex, DualEncoder, Embedder, LocalEmbedder
from oprag.index.document_index import SearchKind

SETS = ("chroma_spans", "cuad_leval", "fairytaleqa_books", "qmsum")
KS = (8, 32, 128)
QUESTIONS = 500
STATIC, MINILM = "static", "MiniLM"
WAYS: tuple[tuple[str, SearchKind, str], ...] = (
    ("dense, static", "dense", STATIC),
    ("dense, MiniLM", "dense", MINILM),
    ("bm25", "bm25", STATIC),
    ("hybrid, static", "hybrid", STATIC),
    ("hybrid, MiniLM", "hybrid", MINILM),
)


def run(data: Path, questions: int = QUESTIONS) -> Result:
    """Search every set in every way."""
    local = LocalEmbedder()
    embedders: dict[str, Embedder] = {STATIC: local, MINILM: DualEncoder("all-MiniLM-L6-v2", _encode)}
    rows: dict[str, list[str]] = {way: [way] for way, _, _ in WAYS}
    sizes: list[str] = []
    for name in SETS:
        if not (data / name).is_dir():
            continue
        data_set = read_set(data / name, questions)
        indexes = {
            embedder: {
                document: DocumentIndex.from_texts({document: data_set.texts[document]}, embeds, local.tokenizer)
                for document in dict.fromkeys(question.document_id for question in data_set.questions)
            }
            for embedder, embeds in embedders.items()
        }
        for way, search, embedder in WAYS:
            shares = _shares(data_set, indexes[embedder], search)
            rows[way].append(" / ".join(f"{share:.3f}" for share in shares.mean(axis=0)))
        sizes.append(f"{name}, {len(shares):,} questions")
    return Result(
        "Evidence coverage",
        "Share of the characters of the gold evidence in the k chunks that `DocumentIndex.search` finds in the "
        f"document of the question, mean over up to {questions} questions per set. Chunks of 128 tokens; MiniLM is "
        "all-MiniLM-L6-v2.",
        tables=[Table(f"k = {', '.join(map(str, KS))}:", ["search", *sizes], list(rows.values()))],
    )


def _encode(texts: Sequence[str]) -> Any:
    return minilm().encode(list(texts), show_progress_bar=False)


def _shares(data_set: DataSet, indexes: Mapping[str, DocumentIndex], search: SearchKind) -> NDArray[np.float64]:
    """The coverage of each question with evidence, for each k."""
    shares: list[NDArray[np.float64]] = []
    for document, index in indexes.items():
        asked = [one for one in data_set.questions if one.document_id == document and one.evidence]
        shares += [_covered(question, index.search(question.text, max(KS), search)) for question in asked]
    return np.array(shares)


def _covered(question: Question, hits: Sequence[Any]) -> NDArray[np.float64]:
    """The share of the evidence in the first k hits, for each k."""
    gained = np.zeros(max(KS))
    for hit in hits:
        start, end = hit.metadata["start_index"], hit.metadata["end_index"]
        gained[hit.rank] = sum(max(0, min(end, last) - max(start, first)) for first, last in question.evidence)
    whole = sum(last - first for first, last in question.evidence)
    return np.cumsum(gained)[[k - 1 for k in KS]] / whole


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder with a folder for each set")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="maximum number of questions per set")


if __name__ == "__main__":
    main(run, _add_arguments)
