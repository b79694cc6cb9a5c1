"""Time and size of a working context: adding the chunks of a search, its state, and the middleware of an agent."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Sequence
from statistics import median
from time import process_time, thread_time
from typing import Any, NamedTuple
from uuid import UUID

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import tool
from langchain_text_splitters import RecursiveCharacterTextSplitter
from pydantic import PrivateAttr

from benchmarks.agent_runs import CHUNK, OVERLAP, ScriptedModel
from benchmarks.result import Figure, Result, Table
from benchmarks.texts import document
from benchmarks.timing import Timing, ms
from oprag import Chunk, WorkingContext
from oprag.chunk import Place, PositionKind, Span
from oprag.langchain import OrderPreservingMiddleware

__all__ = ["ROUNDS", "times"]

ROUNDS = 40
GATHERED, FOUND = 2_000, 128
LIMIT_MS, LIMIT_STEP_MS, LIMIT_SIZE, LIMIT_GROWTH = 1.5, 10.0, 1.5, 1.5
NEW = (16, 32, 64, 128, 256)
CONTEXTS = (500, 2_000, 8_000)
STATES = (100, 500, 2_000)
K, SEARCHES = 16, 8
SOURCES, WORDS = 10, 140_000  # of each source

ABOUT = (
    f"Generated documents ({SOURCES} sources), chunks of `RecursiveCharacterTextSplitter` ({CHUNK:,} characters, "
    f"overlap {OVERLAP}) with `add_start_index=True` and random ids, in random order. CPU time of the thread or "
    "the process, with the garbage collector off: medians of {rounds} repetitions."
)


class _Case(NamedTuple):
    """A search to time."""

    name: str
    gathered: int
    known: int
    new: int


def times(rounds: int = ROUNDS) -> Result:
    """Time the working context and the middleware."""
    documents = _documents()
    result = Result("Times", ABOUT.format(rounds=rounds))
    _add_searches(result, documents, rounds)
    _add_sizes(result, documents)
    _add_calls(result, documents, rounds)
    return result


def _documents() -> list[Document]:
    """The chunks of all sources, shuffled by their random ids."""
    splitter = RecursiveCharacterTextSplitter(chunk_size=CHUNK, chunk_overlap=OVERLAP, add_start_index=True)
    texts = [document(WORDS, seed) for seed in range(SOURCES)]
    chunks = splitter.create_documents(texts, [{"source": f"documents/book_{number}.txt"} for number in range(SOURCES)])
    for number, chunk in enumerate(chunks):
        chunk.id = str(UUID(int=(number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128))
    mixed_up: list[Document] = sorted(chunks, key=lambda chunk: str(chunk.id))
    return mixed_up


def _chunks(documents: Sequence[Document]) -> list[Chunk]:
    return [
        Chunk(one.page_content, rank, metadata=one.metadata, id=one.id, origin=one)
        for rank, one in enumerate(documents)
    ]


def _gathered(documents: Sequence[Document]) -> dict[str, Any]:
    """The state after searches that found these documents."""
    working = WorkingContext()
    for at in range(0, len(documents), FOUND):
        working.add(_chunks(documents[at : at + FOUND]))
    return working.to_dict()


def _add_searches(result: Result, documents: Sequence[Document], rounds: int) -> None:
    asked = [
        _Case("all known", GATHERED, FOUND, 0),
        _Case("half of them new", GATHERED, FOUND // 2, FOUND // 2),
        _Case("all new", GATHERED, 0, FOUND),
    ]
    linear = [_Case("all new", GATHERED, 0, new) for new in NEW]
    growing = [_Case("all new", gathered, 0, FOUND) for gathered in CONTEXTS]
    cases = list(dict.fromkeys([*asked, *linear, *growing]))
    timed = _time_searches(documents, cases, rounds)
    result.figures += [
        Figure(
            f"`add` of {FOUND} chunks to {GATHERED:,}, {case.name}",
            f"at most {LIMIT_MS:g} ms",
            f"{timed[case]} ms",
            timed[case].median * 1000 <= LIMIT_MS,
        )
        for case in asked
    ]
    few, many = linear[1], linear[-1]
    growth = (timed[many].median / many.new) / (timed[few].median / few.new)
    result.figures.append(
        Figure(
            f"time per new chunk, {many.new} at once relative to {few.new}",
            f"linear (at most {LIMIT_GROWTH:g} times)",
            f"{growth:.2f} times",
            growth <= LIMIT_GROWTH,
        )
    )
    result.tables.append(
        Table(
            "`WorkingContext.add`:",
            ["found", "in the context before", "chunks added", "ms"],
            [
                [case.name, f"{case.gathered:,}", str(case.known + case.new), str(timed[case])]
                for case in dict.fromkeys([*asked, *growing])
            ],
        )
    )


def _time_searches(documents: Sequence[Document], cases: Sequence[_Case], rounds: int) -> dict[_Case, Timing]:
    """Time the cases in turn, each on a new working context."""
    documents, last = documents[:-1], _chunks(documents[-1:])
    states = {case.gathered: _gathered(documents[: case.gathered]) for case in cases}
    seconds: dict[_Case, list[float]] = {case: [] for case in cases}
    gc.disable()
    for number in range(rounds + 1):
        for case in cases:
            working = WorkingContext.from_dict(states[case.gathered])
            working.add(last)
            at = number * 37 % (case.gathered - case.known + 1)
            new = case.gathered + number * 53 % (len(documents) - case.gathered - case.new + 1)
            chunks = _chunks([*documents[at : at + case.known], *documents[new : new + case.new]])
            start = thread_time()
            working.add(chunks)
            seconds[case].append(thread_time() - start)
        gc.collect()
    gc.enable()
    return {case: Timing(tuple(values[1:])) for case, values in seconds.items()}


def _add_sizes(result: Result, documents: Sequence[Document]) -> None:
    found = documents[:GATHERED]
    with_offsets = _gathered(found)
    working = WorkingContext()
    # As if a store without offsets had been searched.
    evidence = "InMemoryVectorStore, 998 of 999 neighbors overlap"
    for at in range(0, len(found), FOUND):
        chunks = []
        for rank, one in enumerate(found[at : at + FOUND]):
            source = one.metadata["source"]
            start, number = one.metadata["start_index"], one.metadata["start_index"] // (CHUNK - OVERLAP)
            place = Place((0, number), PositionKind.STORE, evidence, run=Span(start, start + len(one.page_content), 0))
            chunks.append(Chunk(one.page_content, rank, metadata={"source": source}, id=one.id, place=place))
        working.add(chunks)
    text = sum(len(one.page_content.encode()) for one in found)
    for name, state in (("with offsets", with_offsets), ("by the order of a store", working.to_dict())):
        size = len(json.dumps(state, separators=(",", ":"), ensure_ascii=False).encode()) / text
        result.figures.append(
            Figure(
                f"JSON of the state of {GATHERED:,} chunks, relative to their text, {name}",
                f"at most {LIMIT_SIZE:g} times the text",
                f"{size:.3f} times",
                size <= LIMIT_SIZE,
            )
        )


class _Clock(ScriptedModel):
    """Records the CPU time of the process between two model calls."""

    _between: list[float] = PrivateAttr(default_factory=list)
    _last: float = PrivateAttr(0.0)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self._between.append(process_time() - self._last)
        self.requests = []
        reply = super()._generate(messages, *args, **kwargs)
        self._last = process_time()
        return reply

    def timed(self) -> list[float]:
        """Return the times recorded since the last call."""
        noted, self._between = self._between, []
        return noted


class _Nothing(AgentMiddleware[Any, Any, Any]):
    """Middleware with the same hooks that does nothing."""

    def before_model(self, state: Any, runtime: Any) -> None:
        """Do nothing."""

    def after_agent(self, state: Any, runtime: Any) -> None:
        """Do nothing."""

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Do nothing."""
        return handler(request)


NONE, IDLE, DELTA, COMPACT = "no middleware", "middleware that does nothing", "`delta`", "`compact`"


def _add_calls(result: Result, documents: Sequence[Document], rounds: int) -> None:
    """Time agents whose first search finds many chunks, and the others `K` each, half of them found before."""
    middleware: dict[str, list[Any]] = {
        NONE: [],
        IDLE: [_Nothing()],
        DELTA: [OrderPreservingMiddleware()],
        COMPACT: [OrderPreservingMiddleware(layout="compact")],
    }
    rows = []
    for size in STATES:
        answers = [documents[:size]]
        answers += [
            [*documents[at : at + K // 2], *documents[size + at : size + at + K // 2]]
            for at in range(0, SEARCHES * (K // 2), K // 2)
        ]
        agents = {name: _agent(answers, one) for name, one in middleware.items()}
        seconds: dict[str, list[float]] = {name: [] for name in agents}
        gc.disable()
        for number in range(max(3, rounds // SEARCHES + 1)):
            for name, (model, invoke) in agents.items():
                invoke()
                # No search precedes the first call, and the large search precedes the second.
                noted = model.timed()[2:]
                if number:
                    seconds[name] += noted
            gc.collect()
        gc.enable()
        base = median(seconds.pop(NONE))
        beyond = {name: median(values) - base for name, values in seconds.items()}
        rows.append([f"{size:,}", *map(ms, beyond.values())])
        if size == GATHERED:
            result.figures += [
                Figure(
                    f"a step of the middleware at {GATHERED:,} chunks, {name}",
                    f"at most {LIMIT_STEP_MS:g} ms",
                    f"{ms(beyond[name])} ms",
                    beyond[name] * 1000 <= LIMIT_STEP_MS,
                )
                for name in (DELTA, COMPACT)
            ]
    result.tables.append(
        Table(
            "From one model call to the next in `create_agent`, in milliseconds in addition to no middleware; the "
            f"search between them finds {K} chunks, half of them new, of all {SOURCES} sources:",
            ["in the context before", IDLE, DELTA, COMPACT],
            rows,
        )
    )


def _agent(answers: Sequence[Sequence[Document]], middleware: list[Any]) -> tuple[_Clock, Callable[[], object]]:
    @tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, list[Document]]:
        """Search."""
        found = list(answers[int(query)])
        return "\n\n".join(one.page_content for one in found), found

    model = _Clock()
    model.steps = [[str(number)] for number in range(len(answers))]
    agent = create_agent(model, [search], middleware=middleware)
    return model, lambda: agent.invoke({"messages": [HumanMessage("Search.")]}, {"recursion_limit": 200})
