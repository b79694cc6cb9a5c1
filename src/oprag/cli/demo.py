"""The command `oprag demo`: whether order matters on some files, measured without a key, and one context both ways."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pydoc_data.topics import topics
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import typer
from rich import box
from rich.table import Table

from oprag._internal.text_table import one_line, safe, shortened
from oprag.chunk import Chunk, Passage, counted, sorted_by_rank
from oprag.cli.ask import index_sources, place_of, print_answer, read_sources, retriever_of
from oprag.cli.console import console
from oprag.cli.options import Indexing, declare
from oprag.compare.data.data_set import whole_text
from oprag.compare.metrics.functions import inverted_pairs
from oprag.compare.providers.chat_models import LOCAL_NAME, local_model
from oprag.context import Context, build_context
from oprag.embedding.static import local_embedder
from oprag.errors import InputFileError, MissingExtraError
from oprag.index.document_index import DocumentIndex
from oprag.options import ContextOptions, check_question
from oprag.pipeline.headings import headings_in
from oprag.pipeline.stitch import JoinedText

if TYPE_CHECKING:
    from oprag.langchain.retriever import OrderPreservingRetriever

__all__ = ["demo"]

_QUESTION = "What happens when an exception is raised inside a with statement?"
_SOURCE = "python-reference"
_CANDIDATES, _K, _TOKEN_BUDGET = 12, 8, 1_000
# Of the measurement: chunks of a context, candidates for each of them, and questions of each kind.
_KEPT, _TIMES, _QUESTIONS = 16, 4, 30
_CONTINUITY = 0.3
_SENTENCE = re.compile(r"\b[A-Z](?:[^.!?\n]|\n(?!\s)){40,200}[.!?](?=\s)")
_MANY = 0.25  # inverted pairs; a random order has half of all pairs
# Characters of a chunk in the table and of each half of an excerpt, so that lines fit in 80 columns.
_WIDTH, _HALF = 28, 38


def demo(
    *,
    files: list[str] | None = typer.Argument(
        None,
        help="Text, Markdown (both UTF-8) or PDF files. Default: the Python language reference, which is part of "
        "Python.",
    ),
    question: str | None = declare(
        "The question of the context that is shown. Default: one of the measured questions."
    ),
) -> None:
    """Measure on FILES whether order matters, without a key or a model, and show one context in both orders.

    The questions are headings and sentences of the files. What is measured is what a model would read, not its answers.
    """
    if question is not None:
        check_question(question)
    out = console()
    sources = read_sources(files) if files else {_SOURCE: "\n\n".join(topics.values())}
    words = sum(len(whole_text(text).split()) for text in sources.values())
    out.print(f"{'Files' if files else 'The Python language reference'}: {words:,} words")
    index = index_sources(sources, Indexing())
    if len(index) <= _KEPT:
        problem = f"the files have only {counted(len(index), 'chunk')}; a model can read them whole, in their own order"
        raise InputFileError(f"{problem}. Name longer files", list(sources))
    measured = [*_measured(index, sources)]
    _show_measured(measured, len(index))
    question = question or (_typical(measured) if files else _QUESTION)
    if question is None:
        return

    count_tokens = local_embedder().count_tokens
    options = ContextOptions(k=_K, max_candidates=_CANDIDATES, token_budget=_TOKEN_BUDGET, count_tokens=count_tokens)
    retriever = retriever_of(index, options, Indexing())
    context = retriever.get_context(question)
    _show_context(question, context)
    if not files:
        _answer(retriever, question)


class _Measured(NamedTuple):
    """What one question finds: its best chunks in document order, and those chosen with continuity."""

    question: str
    inverted: float | None  # pairs of chunks of one file in the wrong order in rank order; None without such a pair
    plain: Context
    continuous: Context


def _measured(index: DocumentIndex, sources: Mapping[str, str | list[str]]) -> Iterator[_Measured]:
    for question in _questions(sources):
        hits = index.search(question, _KEPT * _TIMES)
        plain = build_context(hits, k=_KEPT)
        continuous = build_context(hits, k=_KEPT, max_candidates=_KEPT * _TIMES, continuity=_CONTINUITY)
        yield _Measured(question, inverted_pairs(map(_place, sorted_by_rank(plain.kept))), plain, continuous)


def _place(chunk: Chunk) -> tuple[str, int]:
    return chunk.metadata["source"], chunk.metadata["chunk_index"]


def _questions(sources: Mapping[str, str | list[str]]) -> Iterator[str]:
    """Headings and sentences of the files, evenly spread."""
    headings: list[str] = []
    sentences: list[str] = []
    for name, content in sources.items():
        text = whole_text(content)
        found = headings_in(JoinedText(text, [0], [0]), name)
        headings += [heading.title for heading in found if len(heading.title.split()) > 1]
        sentences += [one_line(sentence) for sentence in _SENTENCE.findall(text)]
    for texts in (headings, sentences):
        distinct = list(dict.fromkeys(texts))
        yield from distinct[:: -(-len(distinct) // _QUESTIONS) or 1]


def _beside(context: Context) -> float:
    """The share of chunks that have the chunk before or after them in the context."""
    places = [_place(chunk) for chunk in context.kept]
    adjacent = [first == second and number + 1 == other for (first, number), (second, other) in pairwise(places)]
    return fmean(before or after for before, after in zip([False, *adjacent], [*adjacent, False], strict=True))


def _typical(measured: Sequence[_Measured]) -> str | None:
    """The question with the median share of inverted pairs; None if no question has a pair."""
    ranked = sorted((one.inverted, one.question) for one in measured if one.inverted is not None)
    return ranked[len(ranked) // 2][1] if ranked else None


def _show_measured(measured: Sequence[_Measured], chunks: int) -> None:
    out = console()
    if not measured:
        out.print("The files have no headings or sentences to make questions of; pass --question to see a context.")
        return
    shares = [one.inverted for one in measured if one.inverted is not None]
    if not shares:
        out.print("No question finds two chunks of one file, so document order changes nothing here.")
        return
    inverted = fmean(shares)
    out.print(f"{len(measured)} questions, made of headings and sentences; {_KEPT} of {chunks:,} chunks for each\n")
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("")
    for head in ("rank order", "document order", f"continuity={_CONTINUITY}"):
        table.add_column(head, justify="right")
    plain, continuous = [one.plain for one in measured], [one.continuous for one in measured]
    pieces = (f"{fmean(len(one.passages) for one in some):.1f}" for some in (plain, continuous))
    beside = (f"{fmean(map(_beside, some)):.0%}" for some in (plain, plain, continuous))
    table.add_row("pairs in the wrong order", f"{inverted:.0%}", "0%", "0%")
    table.add_row("separate pieces of text", str(_KEPT), *pieces)
    table.add_row("chunks with a neighbor", *beside)
    out.print(table)
    scrambled = "Rank order scrambles this text" if inverted >= _MANY else "Rank order is close to document order here"
    out.print(f"{scrambled} (50% would be random).")
    out.print("Whether answers improve depends on the model: oprag compare measures it.\n")


def _show_context(question: str, context: Context) -> None:
    out = console()
    out.print(f"Question: {safe(question)}\n")
    rank = sorted_by_rank(context.kept)
    table = Table(box=box.SIMPLE, title="The same chunks, in two orders", title_justify="left", pad_edge=False)
    table.add_column("source order (OP-RAG)")
    table.add_column("rank order (vanilla RAG)")
    for left, right in zip(context.kept, rank, strict=True):
        table.add_row(_line(left), _line(right))
    out.print(table)
    out.print(f"{len(context.dropped)} of {_CANDIDATES} candidates were dropped:")
    for drop in context.dropped:
        out.print(f"  rank {drop.chunk.rank}: {drop.reason}, {drop.detail}")
    out.print(f"\nContext: {context.tokens:,} of at most {_TOKEN_BUDGET:,} tokens\n")
    for passage in context.passages:
        out.print(f"── {place_of(passage)}")
        out.print(_excerpt(passage))


def _line(chunk: Chunk) -> str:
    span = chunk.span
    start = "" if span is None else f"{span.start:,}" if span.page is None else f"p. {span.page}"
    return f"{start:>7}  {shortened(one_line(safe(chunk.text)), _WIDTH)}"


def _excerpt(passage: Passage) -> str:
    words = one_line(safe(passage.text))
    return words if len(words) <= 2 * _HALF else f"{words[:_HALF]} … {words[-_HALF:]}"


def _answer(retriever: OrderPreservingRetriever, question: str) -> None:
    """Print the packaged model's answer, or how to install the model."""
    out = console()
    try:
        llm = local_model()
    except MissingExtraError as error:
        out.print(f"\nNo answer, because no model is installed. {error}")
        return
    from oprag.langchain import OrderPreservingChain

    out.print(f"\nAnswer of a very small model ({LOCAL_NAME}; expect mistakes):")
    print_answer(OrderPreservingChain(llm=llm, retriever=retriever), question)
