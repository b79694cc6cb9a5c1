"""Time to the first token of an answer, compared with `create_retrieval_chain` on the same model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from langchain_classic.chains import create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable

from benchmarks.found import FoundDocuments, documents
from benchmarks.langchain_model import FakeChatModel
from benchmarks.result import Figure, Result, Table, main
from benchmarks.timing import Timing, interleave, interleave_async, times
from oprag.langchain import OrderPreservingChain

COUNT = 16
BEFORE = (0.02, 0.0)
ROUNDS = 150
LIMIT = 1.1
QUESTION = "What follows?"
PROMPT = "Answer the question from the text.\n\n{context}\n\nQuestion: {input}"
OURS, THEIRS = "oprag", "`create_retrieval_chain`"


def run(rounds: int = ROUNDS) -> Result:
    """Stream answers until their first chunk arrives."""
    figures: list[Figure] = []
    rows: list[list[str]] = []
    for seconds in BEFORE:
        about = f"{seconds * 1000:.0f} ms before the first token"
        chains = _chains(FakeChatModel(seconds=seconds))
        sync: dict[str, Callable[[], object]] = {name: partial(_first, chain) for name, chain in chains.items()}
        asynchronous: dict[str, Callable[[], Awaitable[object]]] = {
            name: partial(_afirst, chain) for name, chain in chains.items()
        }
        modes = {
            "sync": interleave(sync, rounds),
            "async": asyncio.run(interleave_async(asynchronous, rounds)),
        }
        figures += [_figure(f"{about}: oprag / {THEIRS}, {mode}", timings) for mode, timings in modes.items()]
        rows += [[f"{about}: {name}", *(str(timings[name]) for timings in modes.values())] for name in chains]
    return Result(
        "First token",
        f"`stuff` over {COUNT} passages, streamed: the time from the call to the first chunk of the answer.",
        figures=figures,
        tables=[Table("Milliseconds:", ["", "sync", "async"], rows)],
    )


def _chains(model: FakeChatModel) -> dict[str, Runnable[Any, Any]]:
    found = FoundDocuments(documents=documents(COUNT))
    stuff = create_stuff_documents_chain(model, ChatPromptTemplate.from_template(PROMPT))
    return {
        OURS: OrderPreservingChain(llm=model, retriever=found),
        THEIRS: create_retrieval_chain(found, stuff),
    }


def _first(chain: Runnable[Any, Any]) -> Iterator[Any]:
    pieces = chain.stream({"input": QUESTION})
    next(piece for piece in pieces if piece.get("answer"))
    return pieces


async def _afirst(chain: Runnable[Any, Any]) -> AsyncIterator[Any] | None:
    pieces = chain.astream({"input": QUESTION})
    async for piece in pieces:
        if piece.get("answer"):
            return pieces
    return None


def _figure(what: str, timings: dict[str, Timing]) -> Figure:
    ratio = times(timings[OURS], timings[THEIRS])
    return Figure(what, f"at most {LIMIT:g}", f"{ratio:.2f}", ratio <= LIMIT)


if __name__ == "__main__":
    main(run)
