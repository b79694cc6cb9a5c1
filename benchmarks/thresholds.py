"""The threshold stage over 128 chunks, for a repeated question, compared with LangChain's two filters."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pydoc_data.topics import topics
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from benchmarks.result import Figure, Result, Table, main
from benchmarks.timing import interleave, times
from oprag import LocalEmbedder, split_tokens
from oprag.langchain import OrderPreservingCompressor, stamp_positions

CHUNKS = 128
QUESTION = "What happens when an exception is raised inside a with statement?"
REDUNDANCY = 0.95
IN_A_ROW = 5
# For each embedder a suitable similarity threshold, the minimum ratio to LangChain, and the number of turns.
EMBEDDERS: dict[str, tuple[float, float, int]] = {
    "static (wordllama, 256 dimensions)": (0.3, 20, 15),
    "all-MiniLM-L6-v2 (384 dimensions)": (0.2, 100, 3),
}


class Counting(Embeddings):
    """Counts the texts that a model embeds."""

    def __init__(self, name: str, embed: Callable[[list[str]], list[list[float]]]) -> None:
        self.model = name
        self.texts = 0
        self._embed = embed

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += len(texts)
        return self._embed(texts)

    def embed_query(self, text: str) -> list[float]:
        return self._embed([text])[0]


def run() -> Result:
    """Time both on the same documents with the same embedder."""
    result = Result(
        "Threshold stage",
        f"{CHUNKS} chunks of 128 tokens of the Python language reference, a question that was asked before, only the "
        "compressor. oprag: `OrderPreservingCompressor` with a similarity and a redundancy threshold, ordering "
        "included, vectors from its in-memory cache; LangChain: `EmbeddingsRedundantFilter` and "
        f"`EmbeddingsFilter(k={CHUNKS})`.",
    )
    embedder = LocalEmbedder()
    text = "\n\n".join(topics.values())
    windows = split_tokens(text, embedder.tokenizer, 128)
    rows: list[list[str]] = []
    for (name, (similarity, asked, turns)), embed in zip(
        EMBEDDERS.items(), (_static(embedder), _minilm()), strict=True
    ):
        embeddings = Counting(name, embed)
        documents = stamp_positions(
            [Document(window.text) for window in windows[:: len(windows) // CHUNKS][:CHUNKS]], "t"
        )
        ours, theirs = _ours(documents, embeddings, similarity), _theirs(documents, embeddings, similarity)
        timings = interleave({"oprag": ours, "LangChain": theirs}, turns, in_a_row=IN_A_ROW)
        per_question = {}
        for way, case in (("oprag", ours), ("LangChain", theirs)):
            embeddings.texts = 0
            case()
            per_question[way] = embeddings.texts
        ratio = 1 / times(timings["oprag"], timings["LangChain"])
        result.figures += [
            Figure(
                f"{name}: time of LangChain, relative to oprag",
                f"at least {asked:g} times",
                f"{ratio:,.0f} times",
                ratio >= asked,
            ),
            Figure(
                f"{name}: texts embedded for a second question",
                f"0 (LangChain {CHUNKS})",
                f"{per_question['oprag']} (LangChain {per_question['LangChain']})",
                not per_question["oprag"],
            ),
        ]
        embedded = f"{per_question['oprag']} / {per_question['LangChain']}"
        rows.append([name, str(timings["oprag"]), str(timings["LangChain"]), embedded])
    head = ["embedder", "oprag", "LangChain", "chunks embedded for a second question, oprag / LangChain"]
    result.tables.append(Table("Milliseconds per question:", head, rows))
    return result


def _ours(documents: list[Document], embeddings: Embeddings, similarity: float) -> Callable[[], Any]:
    compressor = OrderPreservingCompressor(
        embeddings=embeddings, similarity_threshold=similarity, redundancy_threshold=REDUNDANCY
    )
    compressor.compress_documents(documents, QUESTION)
    return lambda: compressor.compress_documents(documents, QUESTION)


def _theirs(documents: list[Document], embeddings: Embeddings, similarity: float) -> Callable[[], Any]:
    with warnings.catch_warnings():
        # Every import of the package raises a deprecation warning.
        warnings.simplefilter("ignore", DeprecationWarning)
        from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline, EmbeddingsFilter
        from langchain_community.document_transformers import EmbeddingsRedundantFilter

        pipeline = DocumentCompressorPipeline(
            transformers=[
                EmbeddingsRedundantFilter(embeddings=embeddings, similarity_threshold=REDUNDANCY),
                # 20 by default, regardless of the threshold.
                EmbeddingsFilter(embeddings=embeddings, similarity_threshold=similarity, k=CHUNKS),
            ]
        )
    return lambda: pipeline.compress_documents(documents, QUESTION)


def _static(embedder: LocalEmbedder) -> Callable[[list[str]], list[list[float]]]:
    return lambda texts: embedder.embed_documents(texts).tolist()


def _minilm() -> Callable[[list[str]], list[list[float]]]:
    from benchmarks.minilm import minilm

    model = minilm()
    return lambda texts: model.encode(texts, show_progress_bar=False).tolist()


if __name__ == "__main__":
    main(run)
