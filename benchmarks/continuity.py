"""Evidence and whole passages in the same number of tokens: by rank, with fixed neighbors, and by continuity."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.data_sets import DataSet, Question, read_set
from benchmarks.minilm import minilm
from benchmarks.result import Result, Table, main
from oprag import (
    Chunk,
    ContextOptions,
    DocumentIndex,
    DualEncoder,
    Embedder,
    LocalEmbedder,
    build_context,
    neighbors_among,
)
from oprag.index.document_index import SearchKind

SETS = ("qmsum", "fairytaleqa_books", "chroma_spans", "cuad_leval")
BUDGETS = (1_024, 2_048, 4_096, 8_192, 16_384)
AVERAGED = 4  # budgets in the means; more than half of the meetings fit into the last one
CONTINUITY = (0.3, 0.5)
QUESTIONS = 600
WHOLE = 0.95  # share of the evidence from which it counts as whole
DRAWS = 2_000  # of the bootstrap
RANK, DEFAULT = "by rank", "continuity 0.3"
NEIGHBORS = {"neighbors 1": 1}
SEGMENTS = "segments"
FEW = 8  # chunks that a retriever with a low limit returns
AROUND = (0, 1)
# The "balanced" values of dsRAG: the fall of a chunk's value with its rank, the penalty of each chunk in a segment, the
# minimum value of a segment, and its maximum number of chunks.
DECAY, PENALTY, MINIMUM, LONGEST = 30, 0.18, 0.5, 15
_TAKEN = -1e9
WAYS: dict[str, SearchKind] = {"static": "dense", "MiniLM": "dense", "BM25": "bm25", "hybrid": "hybrid"}
SHOWN = "MiniLM,BM25"


class Search(NamedTuple):
    """An index for each document of a set, and how it is searched."""

    indexes: Mapping[str, DocumentIndex]
    kind: SearchKind


def run(data: Path, questions: int = QUESTIONS, size: int = 128, ways: str = SHOWN) -> Result:
    """Search every set in every way, and build the contexts of each question."""
    share_rows: list[list[str]] = []
    whole_rows: list[list[str]] = []
    budget_rows: list[list[str]] = []
    few_rows: list[list[str]] = []
    settings = (RANK, *NEIGHBORS, SEGMENTS, *(f"continuity {one}" for one in CONTINUITY))
    for name in SETS:
        data_set = read_set(data / name, questions)
        for way in ways.split(","):
            found = _covered(data_set, _search(data_set, way, size), size, settings)
            shares = {setting: covered[:, :AVERAGED] for setting, covered in found.shares.items()}
            means = {setting: covered.mean() for setting, covered in shares.items()}
            where = f"{name}, {way}"
            gain = _gain(shares[DEFAULT].mean(1), shares[RANK].mean(1), found.documents)
            share_rows.append([where, f"{len(found.documents):,}", *(f"{means[one]:.3f}" for one in settings), gain])
            whole_rows.append([where, *(_whole_and_missed(shares[one]) for one in settings)])
            pairs = zip(found.shares[DEFAULT].T, found.shares[RANK].T, strict=True)
            budget_rows.append([where, *(f"{(one - other).mean():+.3f}" for one, other in pairs)])
            few_rows.append([where, *(_few(*found.few[:, place].T) for place in range(len(AROUND)))])
    budgets = ", ".join(f"{budget:,}" for budget in BUDGETS[:AVERAGED])
    return Result(
        "Continuity",
        f"What is in the context of a question about one document, mean over token budgets of {budgets}. Chunks of "
        f"{size} tokens without overlap; MiniLM is all-MiniLM-L6-v2. `continuity` chooses among four times as many "
        "candidates as fit. Neighbors: each chunk by rank, followed by those around it, until the budget is used up. "
        'Segments: those of dsRAG by its documentation, with its preset "balanced" and ranks in place of a reranker\'s '
        "scores. This measures the context, not answers.",
        tables=[
            Table(
                "Share of the characters of the gold evidence, and the difference of continuity 0.3 to rank with the "
                "95 % interval of a bootstrap over documents:",
                ["set and search", "questions", *settings, "0.3 − rank"],
                share_rows,
            ),
            Table(
                "Share of questions whose evidence is in the context whole (at least 95 %) / not at all:",
                ["set and search", *settings],
                whole_rows,
            ),
            Table(
                "Difference of continuity 0.3 to rank in the share of the evidence, at each token budget (more than "
                "half of the meetings have fewer than 16,384 tokens):",
                ["set and search", *(f"{budget:,}" for budget in BUDGETS)],
                budget_rows,
            ),
            Table(
                f"A retriever that returns {FEW} chunks, with `neighbors=`: share of the evidence, questions whole / "
                "not at all, mean tokens:",
                ["set and search", *(f"neighbors={number}" for number in AROUND)],
                few_rows,
            ),
        ],
    )


def _search(data_set: DataSet, way: str, size: int) -> Search:
    embedder = _embedders()["MiniLM" if way == "MiniLM" else "static"]
    documents = dict.fromkeys(question.document_id for question in data_set.questions)
    tokenizer = _embedders()["static"].tokenizer  # type: ignore[attr-defined]
    indexes = {
        one: DocumentIndex.from_texts({one: data_set.texts[one]}, embedder, tokenizer, chunk_size=size)
        for one in documents
    }
    return Search(indexes, WAYS[way])


@cache
def _embedders() -> dict[str, Embedder]:
    return {"static": LocalEmbedder(), "MiniLM": DualEncoder("all-MiniLM-L6-v2", _encode)}


def _encode(texts: Sequence[str]) -> Any:
    return minilm().encode(list(texts), show_progress_bar=False)


class Covered(NamedTuple):
    """The document of each question, and what is in its contexts.

    Attributes:
        documents: The document of each question.
        shares: For each setting the shares of the evidence, of shape (questions, budgets).
        few: The share of the evidence and the tokens with few chunks, of shape (questions, neighbors, 2).
    """

    documents: list[str]
    shares: dict[str, NDArray[np.float64]]
    few: NDArray[np.float64]


def _covered(data_set: DataSet, search: Search, size: int, settings: Sequence[str]) -> Covered:
    documents: list[str] = []
    shares: dict[str, list[list[float]]] = {setting: [] for setting in settings}
    few: list[list[tuple[float, int]]] = []
    for document, index in search.indexes.items():
        asked = [one for one in data_set.questions if one.document_id == document and one.evidence]
        every = len(index.chunks)
        tokens = [len(ids) for ids in _token_ids([chunk.text for chunk in index.chunks])]
        most = 4 * max(BUDGETS) // size
        reader = neighbors_among(index.chunks)
        for question in asked:
            hits = index.search(question.text, most, search.kind)
            documents.append(document)
            runs = _segments(hits, every, most)
            for setting in settings:
                shares[setting].append(
                    [
                        _share(question, _fitting(runs, index, tokens, budget))
                        if setting == SEGMENTS
                        else _share(question, _kept(setting, hits, index, tokens, budget, size))
                        for budget in BUDGETS
                    ]
                )
            contexts = (build_context(hits[:FEW], neighbors=one, read_neighbors=reader).kept for one in AROUND)
            few.append([(_share(question, kept), sum(tokens[int(one.id or 0)] for one in kept)) for kept in contexts])
    return Covered(documents, {setting: np.array(rows) for setting, rows in shares.items()}, np.array(few))


def _token_ids(texts: Sequence[str]) -> Iterator[list[int]]:
    tokenizer: Any = _embedders()["static"].tokenizer  # type: ignore[attr-defined]
    return (one.ids for one in tokenizer.encode_batch(list(texts), add_special_tokens=False))


def _kept(
    setting: str, hits: Sequence[Chunk], index: DocumentIndex, tokens: Sequence[int], budget: int, size: int
) -> Sequence[Chunk]:
    """The chunks in the context."""
    if setting in NEIGHBORS:
        return [index.chunks[number] for number in _with_neighbors(hits, tokens, budget, NEIGHBORS[setting])]
    counts = {chunk.text: count for chunk, count in zip(index.chunks, tokens, strict=True)}
    options = ContextOptions(
        token_budget=budget,
        max_candidates=4 * (budget // size),
        continuity=0.0 if setting == RANK else float(setting.split()[1]),
        # Passages are not joined, so only chunks are counted, and each of them once.
        stitch=False,
        separator="",
        count_tokens=lambda text: counts.get(text, 0),
    )
    return build_context(hits, options).kept


def _with_neighbors(hits: Sequence[Chunk], tokens: Sequence[int], budget: int, number: int) -> list[int]:
    """The places of the chunks by rank, each followed by its neighbors, until one does not fit."""
    kept: dict[int, None] = {}
    left = budget
    for hit in hits:
        place = int(hit.id or 0)
        for distance in sorted(range(-number, number + 1), key=abs):
            one = place + distance
            if 0 <= one < len(tokens) and one not in kept:
                if tokens[one] > left:
                    return list(kept)
                left -= tokens[one]
                kept[one] = None
    return list(kept)


def _segments(hits: Sequence[Chunk], count: int, most: int) -> list[int]:
    """The places of the chunks of dsRAG's segments, those of the best segment first."""
    values = np.full(count, -PENALTY)
    for hit in hits:
        values[int(hit.id or 0)] += np.exp(-hit.rank / DECAY)
    places: list[int] = []
    while len(places) < most:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        best, start, length = max(
            (of_runs.max(), int(of_runs.argmax()), one)
            for one in range(1, min(LONGEST, count) + 1)
            for of_runs in (sums[one:] - sums[:-one],)
        )
        if best < MINIMUM:
            break
        places += range(start, start + length)
        # No later segment overlaps this one.
        values[start : start + length] = _TAKEN
    return places


def _fitting(places: Sequence[int], index: DocumentIndex, tokens: Sequence[int], budget: int) -> list[Chunk]:
    """The chunks at these places, until one does not fit."""
    total = np.cumsum([tokens[place] for place in places]) if places else np.array([])
    return [index.chunks[place] for place in places[: int(np.searchsorted(total, budget, side="right"))]]


def _share(question: Question, kept: Sequence[Chunk]) -> float:
    """The share of the characters of the evidence in these chunks, which do not overlap."""
    spans = [(chunk.metadata["start_index"], chunk.metadata["end_index"]) for chunk in kept]
    inside = sum(
        max(0, min(end, last) - max(start, first)) for start, end in spans for first, last in question.evidence
    )
    return float(inside / sum(last - first for first, last in question.evidence))


def _whole_and_missed(shares: NDArray[np.float64]) -> str:
    return f"{(shares >= WHOLE).mean():.3f} / {(shares == 0).mean():.3f}"


def _few(shares: NDArray[np.float64], tokens: NDArray[np.float64]) -> str:
    return f"{shares.mean():.3f}, {_whole_and_missed(shares)}, {tokens.mean():,.0f}"


def _gain(one: NDArray[np.float64], other: NDArray[np.float64], documents: Sequence[str]) -> str:
    """The mean difference with its interval."""
    low, high = _interval(one - other, documents)
    return f"{(one - other).mean():+.3f} [{low:+.3f}, {high:+.3f}]"


def _interval(differences: NDArray[np.float64], documents: Sequence[str]) -> tuple[float, float]:
    """The 95 % interval of the mean difference, from a bootstrap over documents."""
    names = list(dict.fromkeys(documents))
    belongs = np.array([names.index(document) for document in documents])
    sums, counts = np.bincount(belongs, differences), np.bincount(belongs)
    drawn = np.random.default_rng(0).integers(len(names), size=(DRAWS, len(names)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(low), float(high)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder with a folder for each set")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="maximum number of questions per set")
    parser.add_argument("--size", type=int, default=128, help="tokens of a chunk")
    parser.add_argument("--ways", default=SHOWN, help=f"how to search, separated by commas: {', '.join(WAYS)}")


if __name__ == "__main__":
    main(run, _add_arguments)
