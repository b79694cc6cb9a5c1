"""Overhead of `stuff` and `refine` with a model that replies at once, compared with the frameworks' own chains."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from langchain_classic.chains import RetrievalQA, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import CompactAndRefine, Refine, SimpleSummarize

from benchmarks.found import FoundDocuments, FoundNodes, documents, nodes
from benchmarks.langchain_model import FakeChatModel
from benchmarks.llama_index_model import FakeLLM
from benchmarks.result import Figure, Result, Table, main
from benchmarks.timing import Timing, interleave, interleave_async, times
from oprag.langchain import OrderPreservingChain
from oprag.llama_index import OrderPreservingQueryEngine

COUNT = 16
# Room for one passage per call, but not for two.
PASSAGE_TOKENS = 192
ROUNDS, IN_A_ROW = 40, 5
LIMIT = 1.0
QUESTION = "What follows?"
PROMPT = "Answer the question from the text.\n\n{context}\n\nQuestion: {input}"


class Case(NamedTuple):
    """One way to answer."""

    sync: Callable[[], object]
    asynchronous: Callable[[], Awaitable[object]]


Cases = dict[str, Case]
OURS = "oprag"


def run(rounds: int = ROUNDS) -> Result:
    """Time chains and engines over one retriever each: sync, and async in one running event loop."""
    groups = {"stuff, LangChain": _stuff_chains(), "refine, LangChain": _refine_chains()}
    groups |= {"stuff, LlamaIndex": _stuff_engines(), "refine, LlamaIndex": _refine_engines()}
    figures: list[Figure] = []
    rows: list[list[str]] = []
    for group, cases in groups.items():
        modes = _time(cases, rounds)
        for name in cases:
            ratios = {mode: times(timings[OURS], timings[name]) for mode, timings in modes.items()}
            if name != OURS:
                figures += [_figure(f"{group}: oprag / {name}, {mode}", ratio) for mode, ratio in ratios.items()]
            cells = [cell for mode, timings in modes.items() for cell in (str(timings[name]), f"{ratios[mode]:.2f}")]
            rows.append([f"{group}: {name}", *cells])
    return Result(
        "Overhead of answering",
        f"`stuff` (one call) and `refine` ({COUNT} calls) over {COUNT} passages of about 128 tokens from an in-memory "
        "retriever, with a chat model that replies at once. Ratio: the time of oprag divided by that of the row, "
        "median over the turns.",
        figures=figures,
        tables=[
            Table(
                "Milliseconds per question:",
                ["", *(head for mode in ("sync", "async") for head in (mode, f"ratio, {mode}"))],
                rows,
            )
        ],
    )


def _stuff_chains() -> Cases:
    model, found = FakeChatModel(), _found()
    prompt = ChatPromptTemplate.from_template(PROMPT)
    return {
        OURS: _chain(OrderPreservingChain(llm=model, retriever=found)),
        "`create_retrieval_chain`": _chain(create_retrieval_chain(found, create_stuff_documents_chain(model, prompt))),
        "`RetrievalQA`": _classic(model, found, "stuff"),
    }


def _refine_chains() -> Cases:
    model, found = FakeChatModel(), _found()
    return {
        OURS: _chain(OrderPreservingChain(llm=model, retriever=found, method="refine", passage_tokens=PASSAGE_TOKENS)),
        "`RetrievalQA`": _classic(model, found, "refine"),
    }


def _stuff_engines() -> Cases:
    model, found = FakeLLM(), FoundNodes(nodes(COUNT))
    return {
        OURS: _engine(OrderPreservingQueryEngine(llm=model, retriever=found)),
        "`SimpleSummarize`": _engine(RetrieverQueryEngine(found, SimpleSummarize(llm=model))),
        "`CompactAndRefine`": _engine(RetrieverQueryEngine(found, CompactAndRefine(llm=model))),
    }


def _refine_engines() -> Cases:
    model, found = FakeLLM(), FoundNodes(nodes(COUNT))
    return {
        OURS: _engine(
            OrderPreservingQueryEngine(llm=model, retriever=found, method="refine", passage_tokens=PASSAGE_TOKENS)
        ),
        "`Refine`": _engine(RetrieverQueryEngine(found, Refine(llm=model))),
    }


def _found() -> FoundDocuments:
    return FoundDocuments(documents=documents(COUNT))


def _chain(chain: Runnable[Any, Any], key: str = "input") -> Case:
    return Case(lambda: chain.invoke({key: QUESTION}), lambda: chain.ainvoke({key: QUESTION}))


def _classic(model: FakeChatModel, found: FoundDocuments, chain_type: str) -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated
        return _chain(RetrievalQA.from_chain_type(model, chain_type=chain_type, retriever=found), "query")


def _engine(engine: BaseQueryEngine) -> Case:
    return Case(lambda: engine.query(QUESTION), lambda: engine.aquery(QUESTION))


def _time(cases: Mapping[str, Case], rounds: int) -> dict[str, dict[str, Timing]]:
    sync = {name: case.sync for name, case in cases.items()}
    asynchronous = {name: case.asynchronous for name, case in cases.items()}
    return {
        "sync": interleave(sync, rounds, in_a_row=IN_A_ROW),
        "async": asyncio.run(interleave_async(asynchronous, rounds, in_a_row=IN_A_ROW)),
    }


def _figure(what: str, ratio: float) -> Figure:
    return Figure(what, f"at most {LIMIT:g}", f"{ratio:.2f}", ratio <= LIMIT)


if __name__ == "__main__":
    main(run)
