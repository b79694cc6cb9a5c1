"""Overhead of the LangChain retriever and the LlamaIndex postprocessor, and the frameworks' own reordering."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from random import Random

from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.postprocessor import LongContextReorder, PrevNextNodePostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, NodeWithScore
from llama_index.core.schema import Document as LlamaDocument
from llama_index.core.storage.docstore import SimpleDocumentStore

from benchmarks.found import FoundDocuments, documents
from benchmarks.result import Figure, Result, Table, main
from benchmarks.texts import document
from benchmarks.timing import Timing, beyond, interleave, interleave_async, ms
from oprag import langchain, llama_index

COUNT = 128
ROUNDS, IN_A_ROW = 30, 10
LIMIT = 1.5
BUDGET = 16_384
QUESTION = "What follows?"
BASE, OURS, BUDGETED = "wrapped", "oprag", f"oprag, with `token_budget={BUDGET:_}`"

Rows = dict[str, dict[str, Timing]]


def run() -> Result:
    """Time both adapters on 128 retrieved chunks."""
    in_langchain = _langchain()
    in_llama_index = _llama_index()
    return Result(
        "Adapters",
        f"{COUNT} retrieved chunks of about 128 tokens, in random order. LangChain: documents with `source` and "
        "`start_index`. LlamaIndex: nodes of a `SentenceSplitter` with `file_name` and `page_label`. "
        "`LongContextReorder` ignores positions; `PrevNextNodePostprocessor` also fetches the neighbors of every node.",
        figures=[
            *(
                _figure("LangChain retriever, in addition to the wrapped one", *pair)
                for pair in in_langchain[OURS].items()
            ),
            *(_figure("LlamaIndex postprocessor", *pair) for pair in in_llama_index[OURS].items()),
        ],
        tables=[
            _table(
                "LangChain, milliseconds in addition to the wrapped retriever:",
                in_langchain,
            ),
            _table("LlamaIndex, milliseconds:", in_llama_index),
        ],
    )


def _langchain() -> Rows:
    wrapped = FoundDocuments(documents=documents(COUNT))
    ours = langchain.OrderPreservingRetriever(retriever=wrapped)
    budgeted = langchain.OrderPreservingRetriever(retriever=wrapped, token_budget=BUDGET)
    sync: dict[str, Callable[[], object]] = {
        BASE: lambda: wrapped.invoke(QUESTION),
        OURS: lambda: ours.invoke(QUESTION),
        BUDGETED: lambda: budgeted.invoke(QUESTION),
    }
    asynchronous: dict[str, Callable[[], Awaitable[object]]] = {
        BASE: lambda: wrapped.ainvoke(QUESTION),
        OURS: lambda: ours.ainvoke(QUESTION),
        BUDGETED: lambda: budgeted.ainvoke(QUESTION),
    }
    rows = _rows(sync, asynchronous)
    base = rows.pop(BASE)
    return {name: {mode: beyond(timing, base[mode]) for mode, timing in row.items()} for name, row in rows.items()}


def _llama_index() -> Rows:
    every = _nodes()
    hits = Random(0).sample(every, COUNT)
    nodes = [NodeWithScore(node=node, score=1 - rank / COUNT) for rank, node in enumerate(hits)]
    store = SimpleDocumentStore()
    store.add_documents(every)
    steps: dict[str, BaseNodePostprocessor] = {
        OURS: llama_index.OrderPreservingPostprocessor(),
        BUDGETED: llama_index.OrderPreservingPostprocessor(token_budget=BUDGET),
        "`LongContextReorder`": LongContextReorder(),
        "`PrevNextNodePostprocessor`": PrevNextNodePostprocessor(docstore=store, mode="both"),
    }
    return _rows(
        {name: partial(step.postprocess_nodes, nodes) for name, step in steps.items()},
        {name: partial(step.apostprocess_nodes, nodes) for name, step in steps.items()},
    )


def _nodes() -> list[BaseNode]:
    """The nodes of a file of many pages."""
    pages = [
        LlamaDocument(
            text=document(400, seed=number),
            id_=f"page-{number}",
            metadata={"file_name": "book.pdf", "page_label": str(number)},
        )
        for number in range(1, 301)
    ]
    return SentenceSplitter(chunk_size=128, chunk_overlap=0, tokenizer=str.split).get_nodes_from_documents(pages)


def _rows(
    sync: Mapping[str, Callable[[], object]], asynchronous: Mapping[str, Callable[[], Awaitable[object]]]
) -> Rows:
    modes = {
        "sync": interleave(sync, ROUNDS, in_a_row=IN_A_ROW),
        "async": asyncio.run(interleave_async(asynchronous, ROUNDS, in_a_row=IN_A_ROW)),
    }
    return {name: {mode: timings[name] for mode, timings in modes.items()} for name in sync}


def _figure(what: str, mode: str, timing: Timing) -> Figure:
    return Figure(f"{what}, {mode}", f"at most {LIMIT} ms", f"{ms(timing.median)} ms", timing.median * 1000 <= LIMIT)


def _table(caption: str, rows: Rows) -> Table:
    cells = [[name, *map(str, row.values())] for name, row in rows.items()]
    return Table(caption, [f"{COUNT} chunks", "sync", "async"], cells)


if __name__ == "__main__":
    main(run)
