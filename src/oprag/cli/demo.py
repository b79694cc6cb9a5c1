"""The command `oprag demo`: asks the Python language reference a question in source order and in rank order."""

from __future__ import annotations

from pydoc_data.topics import topics
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table

from oprag._internal.text_table import one_line, safe, shortened
from oprag.chunk import Chunk
from oprag.cli.ask import index_sources, place_of, retriever_of, show_answer, stream_answer
from oprag.cli.console import console
from oprag.cli.options import Indexing
from oprag.compare.providers.local_model import LOCAL_NAME, local_model
from oprag.context import build_context
from oprag.embedding.static import local_embedder
from oprag.errors import MissingExtraError
from oprag.options import ContextOptions, check_question
from oprag.pipeline.stitch import Passage

if TYPE_CHECKING:
    from oprag.langchain.retriever import OrderPreservingRetriever

__all__ = ["demo"]

_QUESTION = "What happens when an exception is raised inside a with statement?"
_SOURCE = "python-reference"
_CANDIDATES, _K, _TOKEN_BUDGET = 12, 8, 1_000
# Characters of a chunk in the table and of each half of an excerpt, so that lines fit in 80 columns.
_WIDTH, _HALF = 28, 38


def demo(question: Annotated[str, typer.Argument(help="The question.")] = _QUESTION) -> None:
    """Ask the Python language reference (shipped with Python) a QUESTION, and compare source order with rank order."""
    check_question(question)
    out = console()
    text = "\n\n".join(topics.values())
    out.print(f"Document: the Python language reference in pydoc_data.topics, {len(text.split()):,} words")
    out.print(f"Question: {safe(question)}\n")

    count_tokens = local_embedder().count_tokens
    options = ContextOptions(k=_K, max_candidates=_CANDIDATES, token_budget=_TOKEN_BUDGET, count_tokens=count_tokens)
    retriever = retriever_of(index_sources({_SOURCE: text}, Indexing()), options, Indexing())
    source = retriever.get_context(question)
    rank = build_context(source.kept, order="rank", stitch=False, count_tokens=count_tokens)

    table = Table(box=box.SIMPLE, title="The same chunks, in two orders", title_justify="left", pad_edge=False)
    table.add_column("source order (OP-RAG)")
    table.add_column("rank order (vanilla RAG)")
    for left, right in zip(source.kept, rank.kept, strict=True):
        table.add_row(_line(left), _line(right))
    out.print(table)
    out.print(f"{len(source.dropped)} of {_CANDIDATES} candidates were dropped:")
    for drop in source.dropped:
        out.print(f"  rank {drop.chunk.rank}: {drop.reason}, {drop.detail}")
    out.print(f"\nContext: {source.tokens:,} of at most {_TOKEN_BUDGET:,} tokens\n")
    for passage in source.passages:
        out.print(f"── {place_of(passage)}")
        out.print(_excerpt(passage))
    _answer(retriever, question)


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
    show_answer(stream_answer(OrderPreservingChain(llm=llm, retriever=retriever), question))


def _line(chunk: Chunk) -> str:
    start = chunk.span.start if chunk.span is not None else 0
    return f"{start:>7,}  {shortened(one_line(safe(chunk.text)), _WIDTH)}"


def _excerpt(passage: Passage) -> str:
    words = one_line(safe(passage.text))
    return words if len(words) <= 2 * _HALF else f"{words[:_HALF]} … {words[-_HALF:]}"
