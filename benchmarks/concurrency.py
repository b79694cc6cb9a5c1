"""Time of `map_reduce` with a slow model, in calls of that model, compared with the frameworks' own."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from langchain_classic.chains import RetrievalQA
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import TreeSummarize

from benchmarks.found import FoundDocuments, FoundNodes, documents, nodes
from benchmarks.langchain_model import FakeChatModel
from benchmarks.llama_index_model import FakeLLM
from benchmarks.result import Figure, Result, Table, main
from benchmarks.timing import Timing, interleave, interleave_async, times
from oprag.langchain import OrderPreservingChain
from oprag.llama_index import OrderPreservingQueryEngine

COUNT, CALL = 16, 0.05
ROUNDS = 9
ONE = "one model call"
QUESTION = "What follows?"
LIMITS = {16: 2.5, 4: 5.5}
# Room for one passage per call, but not for two.
PASSAGE_TOKENS = 192
# `TreeSummarize` fills its prompts regardless of passage boundaries; with this limit it makes as many calls.
PROMPT_TOKENS = 124


class Candidate(NamedTuple):
    """One way to answer, and its model."""

    model: FakeChatModel | FakeLLM
    sync: Callable[[], object]
    asynchronous: Callable[[], Awaitable[object]]


class Seen(NamedTuple):
    """The measurements of one way to answer."""

    timing: Timing
    one_call: Timing
    calls: int
    peak: int

    @property
    def taken(self) -> float:
        """The time in calls: each turn divided by the call of that turn."""
        return times(self.timing, self.one_call)


def run() -> Result:
    """Time `map_reduce`, sync and async."""
    modes = {"sync": _sync(), "async": _async()}
    ours = {(name, mode): row for mode, rows in modes.items() for name, row in rows.items() if name.startswith("oprag")}
    return Result(
        "Concurrent calls",
        f"`map_reduce` over {COUNT} passages with a model that takes {CALL * 1000:.0f} ms per call: {COUNT} "
        "independent calls, then one that combines them, so the minimum is the time of two calls. The frameworks' own "
        "chains make as many calls.",
        figures=[
            figure for name, limit in LIMITS.items() for mode in modes for figure in _figures(name, limit, mode, ours)
        ],
        tables=[
            Table(
                "Time, as a multiple of one model call, and the maximum number of concurrent calls:",
                ["", *(f"{mode}{of}" for mode in modes for of in ("", ", concurrent"))],
                [[name, *(cell for mode in modes.values() for cell in _cells(mode[name]))] for name in modes["sync"]],
            )
        ],
    )


def _candidates() -> dict[str, Candidate]:
    found, found_nodes = FoundDocuments(documents=documents(COUNT)), FoundNodes(nodes(COUNT))
    one = FakeChatModel(seconds=CALL)
    return {
        ONE: Candidate(one, lambda: one.invoke(QUESTION), lambda: one.ainvoke(QUESTION)),
        **{f"oprag in LangChain, {limit} concurrent": _our_chain(found, limit) for limit in LIMITS},
        "LangChain `RetrievalQA`": _classic_chain(found),
        **{f"oprag in LlamaIndex, {limit} concurrent": _our_engine(found_nodes, limit) for limit in LIMITS},
        "LlamaIndex `TreeSummarize`": _tree(found_nodes, use_async=False),
        "LlamaIndex `TreeSummarize(use_async=True)`": _tree(found_nodes, use_async=True),
    }


def _our_chain(found: FoundDocuments, limit: int) -> Candidate:
    model = FakeChatModel(seconds=CALL)
    chain: OrderPreservingChain = OrderPreservingChain(
        llm=model, retriever=found, method="map_reduce", max_concurrency=limit, passage_tokens=PASSAGE_TOKENS
    )
    return Candidate(model, lambda: chain.invoke({"input": QUESTION}), lambda: chain.ainvoke({"input": QUESTION}))


def _classic_chain(found: FoundDocuments) -> Candidate:
    model = FakeChatModel(seconds=CALL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is deprecated
        chain = RetrievalQA.from_chain_type(model, chain_type="map_reduce", retriever=found)
    return Candidate(model, lambda: chain.invoke({"query": QUESTION}), lambda: chain.ainvoke({"query": QUESTION}))


def _our_engine(found: FoundNodes, limit: int) -> Candidate:
    model = FakeLLM(seconds=CALL)
    engine = OrderPreservingQueryEngine(
        llm=model, retriever=found, method="map_reduce", max_concurrency=limit, passage_tokens=PASSAGE_TOKENS
    )
    return Candidate(model, lambda: engine.query(QUESTION), lambda: engine.aquery(QUESTION))


def _tree(found: FoundNodes, *, use_async: bool) -> Candidate:
    model = FakeLLM(seconds=CALL)
    helper = PromptHelper(
        context_window=1_000_000, num_output=256, chunk_overlap_ratio=0.0, chunk_size_limit=PROMPT_TOKENS
    )
    synthesizer = TreeSummarize(llm=model, prompt_helper=helper, use_async=use_async)
    engine = RetrieverQueryEngine(found, synthesizer)
    return Candidate(model, lambda: engine.query(QUESTION), lambda: engine.aquery(QUESTION))


def _sync() -> dict[str, Seen]:
    candidates = _candidates()
    timings = interleave({name: candidate.sync for name, candidate in candidates.items()}, ROUNDS)
    return _seen(candidates, timings)


def _async() -> dict[str, Seen]:
    candidates = _candidates()
    cases = {name: candidate.asynchronous for name, candidate in candidates.items()}
    return _seen(candidates, asyncio.run(interleave_async(cases, ROUNDS)))


def _seen(candidates: dict[str, Candidate], timings: dict[str, Timing]) -> dict[str, Seen]:
    runs = ROUNDS + 1  # the warm-up run
    return {
        name: Seen(timings[name], timings[ONE], candidate.model.calls // runs, candidate.model.peak)
        for name, candidate in candidates.items()
    }


def _figures(limit: int, most: float, mode: str, ours: dict[tuple[str, str], Seen]) -> list[Figure]:
    figures: list[Figure] = []
    for framework in ("LangChain", "LlamaIndex"):
        seen = ours[f"oprag in {framework}, {limit} concurrent", mode]
        taken = seen.taken
        what = f"map_reduce in {framework}, `max_concurrency={limit}`, {mode}"
        figures.append(Figure(what, f"at most {most} calls", f"{taken:.2f} calls", taken <= most))
        if limit < COUNT:
            figures.append(Figure(f"{what}, concurrent calls", f"at most {limit}", str(seen.peak), seen.peak <= limit))
    return figures


def _cells(seen: Seen) -> list[str]:
    return [f"{seen.taken:.2f}", str(seen.peak)]


if __name__ == "__main__":
    main(run)
