"""The threshold grid of Şakar and Emekci over questions about quarterly reports: the chunks kept by each pair."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.data_sets import Question, read_set
from benchmarks.minilm import minilm
from benchmarks.result import Figure, Result, main
from oprag import Context, DocumentIndex, LocalEmbedder
from oprag.langchain import DocumentIndexRetriever, OrderPreservingRetriever

SET = "kg_rag_sec10q"
QUESTIONS = 50
K = 20  # chunks of 1,000 tokens
THRESHOLDS = (None, 0.5, 0.6, 0.7, 0.8, 0.9)
PICTURES = Path(__file__).parent.parent / "docs" / "benchmarks"


class Counted:
    """An embedder that counts what it embeds."""

    def __init__(self, name: str, embed: Any) -> None:
        self.name = name
        self.questions = self.documents = 0
        self._embed = embed

    def embed_questions(self, texts: Sequence[str]) -> Any:
        self.questions += len(texts)
        return self._embed(list(texts))

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.documents += len(texts)
        return self._embed(list(texts))


@dataclass
class Cell:
    """The results of a pair of thresholds, over all questions."""

    chunks: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    hits: list[bool] = field(default_factory=list)

    def add(self, context: Context, question: Question) -> None:
        """Count the context of one question."""
        self.chunks.append(len(context.kept))
        self.tokens.append(context.tokens)
        kept = {chunk.source for chunk in context.kept}
        self.hits.append(not kept.isdisjoint(question.source_documents))

    @property
    def empty(self) -> int:
        """The number of empty contexts."""
        return self.chunks.count(0)


Grid = dict[tuple[float | None, float | None], Cell]


def run(data: Path, questions: int = QUESTIONS, pictures: Path = PICTURES) -> Result:
    """Retrieve once per question, and apply the thresholds of every cell."""
    local = LocalEmbedder()
    data_set = read_set(data / SET)
    # The collections of several reports contain the same texts again.
    texts = {name: text for name, text in data_set.texts.items() if not name.endswith("_all")}
    asked = [question for question in data_set.questions if question.source_documents]
    asked = asked[:: max(1, len(asked) // questions)][:questions]
    result = Result(
        "Threshold grid",
        f"{len(asked)} questions about {len(texts)} quarterly reports (SEC 10-Q), the {K} nearest chunks of 1,000 "
        "tokens for each question, with the pairs of thresholds of Şakar and Emekci (doi 10.1017/nlp.2024.53), applied "
        "with `Context.with_thresholds`. A hit is a question with at least one kept chunk of a document that its "
        "answer was taken from. Each question is embedded and retrieved once, for all cells.",
    )
    for name, embed in (("static", local.embed_documents), ("MiniLM", _minilm)):
        counted = Counted(name, embed)
        index = DocumentIndex.from_texts(texts, counted, local.tokenizer, splitter="recursive")
        counted.documents = 0
        grid, retrievals = _grid(index, asked)
        result.figures.append(
            Figure(
                f"{name}: embedded texts and retrievals for {len(grid)} cells of {len(asked)} questions",
                f"each question once, no chunk; {len(asked)} retrievals",
                f"{counted.questions} questions, {counted.documents} chunks; {retrievals} retrievals",
                (counted.questions, counted.documents, retrievals) == (len(asked), 0, len(asked)),
            )
        )
        draw(grid, name, pictures / f"threshold_grid_{name.lower()}.svg")
        result.notes.append(
            f"![{name}: kept chunks, tokens, empty contexts and hits](threshold_grid_{name.lower()}.svg)"
        )
    return result


def _grid(index: DocumentIndex, asked: Iterable[Question]) -> tuple[Grid, int]:
    local = LocalEmbedder()
    retriever = OrderPreservingRetriever(
        retriever=DocumentIndexRetriever(index=index, k=K), similarity_threshold=-1, count_tokens=local.count_tokens
    )
    grid: Grid = {(row, column): Cell() for row in THRESHOLDS for column in THRESHOLDS}
    retrievals = 0
    for question in asked:
        found = retriever.get_context(question.text)
        retrievals += 1
        for (similarity, redundancy), cell in grid.items():
            context = found.with_thresholds(similarity_threshold=similarity, redundancy_threshold=redundancy)
            cell.add(context, question)
    return grid, retrievals


def draw(grid: Grid, name: str, path: Path) -> None:
    """Write four heat maps to one file."""
    import matplotlib as mpl

    mpl.use("svg")
    # Keep text as text, and write the same file from the same figures.
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "oprag"})
    from matplotlib import pyplot as plt

    panels = {
        "kept chunks (mean)": (lambda cell: mean(cell.chunks), "{:.1f}"),
        "tokens (mean)": (lambda cell: mean(cell.tokens), "{:,.0f}"),
        "empty contexts (%)": (lambda cell: 100 * cell.empty / len(cell.chunks), "{:.0f}"),
        "source-document hits (%)": (lambda cell: 100 * mean(cell.hits), "{:.0f}"),
    }
    figure, axes = plt.subplots(2, 2, figsize=(9, 7.5), layout="constrained")
    for axis, (title, (value, shown)) in zip(axes.flat, panels.items(), strict=True):
        values = [[value(grid[row, column]) for column in THRESHOLDS] for row in THRESHOLDS]
        picture = axis.imshow(values, cmap="cividis", aspect="auto")
        middle = (max(map(max, values)) + min(map(min, values))) / 2
        for row, line in enumerate(values):
            for column, number in enumerate(line):
                colour = "black" if number > middle else "white"
                axis.text(column, row, shown.format(number), ha="center", va="center", color=colour, fontsize=8)
        axis.set(title=title, xlabel="redundancy threshold", ylabel="similarity threshold")
        axis.set_xticks(range(len(THRESHOLDS)), map(_shown, THRESHOLDS))
        axis.set_yticks(range(len(THRESHOLDS)), map(_shown, THRESHOLDS))
        figure.colorbar(picture, ax=axis)
    figure.suptitle(f"Effect of thresholds: SEC 10-Q, {name} embeddings")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _minilm(texts: list[str]) -> Any:
    return minilm().encode(texts, show_progress_bar=False)


def _shown(threshold: float | None) -> str:
    return "none" if threshold is None else f"{threshold:g}"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder with a folder for each set")
    parser.add_argument("--questions", type=int, default=QUESTIONS, help="number of questions")
    parser.add_argument("--pictures", type=Path, default=PICTURES, help="folder for the heat maps")


if __name__ == "__main__":
    main(run, _add_arguments)
