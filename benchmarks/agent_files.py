"""Deep Agents that read what they found from files: one file for each chunk, or one for each source."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.types import Command

from benchmarks.agent_runs import KINDS, SEARCHES, Place, ScriptedModel, Store, queries_of_runs
from benchmarks.agent_texts import shown_as
from benchmarks.data_sets import read_set
from benchmarks.langchain_embeddings import LocalEmbeddings
from benchmarks.result import Figure, Result, Table
from oprag import LocalEmbedder, approximate_tokens
from oprag.langchain import OrderPreservingMiddleware, create_search_tool

__all__ = ["files"]

K = 16
OVERLAPS = (0, 200)  # characters
CHUNKS, SOURCES = "a file for each chunk", "a file for each source"
EACH, END = "after each search", "at the end"
ARMS = tuple(product((CHUNKS, SOURCES), (EACH, END)))

_RUN = re.compile(r"lines? (\d+)(?:-(\d+))?")
_LABEL = re.compile(r"^(?:## )?\[\d+\] ", re.MULTILINE)
_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s)|(?=\n\s*\n)|\Z)", re.DOTALL)

ABOUT = (
    f"A run is a Deep Agent with a scripted model that searches {SEARCHES} times (k = {K}) and reads what it found "
    "with `read_file`; {runs} runs of each kind on each set. Questions and documents are those of the part above, "
    "chunks overlap by 0 or 200 characters. A file for each chunk: as in LangChain's tutorial for Deep Agents. A file "
    "for each source: `create_search_tool` with `OrderPreservingMiddleware(files=True)`. In parentheses: minimum and "
    "maximum over sets, overlaps and kinds of searches."
)
WHOLE = "runs in which every found chunk is in the file of its source"
FEWER = "runs with one file for each source that was found"


class Reader(ScriptedModel):
    """Searches, and reads the files that the searches name."""

    at_the_end: bool = False

    def reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        turn = sum(isinstance(message, AIMessage) for message in messages)
        searched = sum(call["name"] == "search" for message in messages for call in getattr(message, "tool_calls", ()))
        last = messages[-1]
        named = isinstance(last, ToolMessage) and last.name == "search"
        if named and (not self.at_the_end or searched == len(self.steps)):
            read = messages if self.at_the_end else [last]
            listings = [str(one.content) for one in read if isinstance(one, ToolMessage) and one.name == "search"]
            reads = list(_reads("\n".join(listings), whole=self.at_the_end))
            calls = [{"name": "read_file", "args": args, "id": f"read_{turn}_{n}"} for n, args in enumerate(reads)]
            if calls:
                return AIMessage("", tool_calls=calls)
        if searched == len(self.steps):
            return AIMessage("Done.")
        (query,) = self.steps[searched]
        return AIMessage("", tool_calls=[{"name": "search", "args": {"query": query}, "id": f"call_{turn}"}])


def _reads(listing: str, *, whole: bool) -> Iterator[dict[str, Any]]:
    """The arguments of `read_file` for what a search names."""
    named = [line.partition(" ")[::2] for line in listing.splitlines() if line.startswith("/")]
    if whole or not all(rest for _, rest in named):
        yield from ({"file_path": path, "limit": 100_000} for path in dict.fromkeys(path for path, _ in named))
        return
    for path, rest in named:
        _, _, new = rest.partition("): new ")
        for first, end in _RUN.findall(new.partition("; found before")[0]):
            yield {"file_path": path, "offset": int(first) - 1, "limit": int(end or first) - int(first) + 1}


class Arm:
    """A Deep Agent with one kind of files."""

    def __init__(self, kind: str, when: str, store: Store) -> None:
        from deepagents import create_deep_agent

        self._model = Reader(at_the_end=when == END)
        if kind == CHUNKS:
            tools, middleware = [_tutorial_tool(store)], []
        else:
            tools, middleware = [create_search_tool(store.vectors, k=K)], [OrderPreservingMiddleware(files=True)]
        self._agent = create_deep_agent(self._model, tools, middleware=middleware)

    def run(self, queries: Sequence[str]) -> tuple[int, int, dict[str, str]]:
        """The tokens of all tool calls and results, those of the input of all model calls, and the files."""
        self._model.steps, self._model.requests = [[query] for query in queries], []
        state = self._agent.invoke({"messages": [HumanMessage(queries[0])]}, {"recursion_limit": 100})
        requests = self._model.requests
        added = requests[-1].text[len(requests[0].text) :]
        sent = sum(approximate_tokens(request.text) for request in requests)
        return approximate_tokens(added), sent, {path: file["content"] for path, file in state["files"].items()}


def _tutorial_tool(store: Store) -> Any:
    @tool("search")
    def search(query: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Search the documents. Writes each chunk that was found to a file, and returns the paths."""
        folder = f"/retrieved/{blake2b(query.encode(), digest_size=4).hexdigest()}"
        texts = {f"{folder}/chunk_{n}.md": _as_file(one) for n, one in enumerate(store.found(query, K), 1)}
        written = {path: {"content": text, "encoding": "utf-8"} for path, text in texts.items()}
        return Command(
            update={
                "files": written,
                "messages": [ToolMessage("\n".join(texts), tool_call_id=tool_call_id, name="search")],
            }
        )

    return search


def _as_file(document: Document) -> str:
    return f"Source: {document.metadata['source']}\n\n{document.page_content}"


def files(data: Path, sets: Sequence[str], runs: int) -> Result:
    """Run agents over these sets, and count what they read and how much of it is in one piece."""
    embeddings = LocalEmbeddings(LocalEmbedder())
    cases: list[Counter[str]] = []
    totals: Counter[str] = Counter()
    for name, overlap in product(sets, OVERLAPS):
        read = read_set(data / name)
        store = Store(read.texts, embeddings, add_start_index=True, overlap=overlap)
        arms = {(kind, when): Arm(kind, when, store) for kind, when in ARMS}
        for kind in KINDS:
            print(f"{name}, {overlap}, {kind} …", file=sys.stderr, flush=True)
            sums: Counter[str] = Counter()
            for queries in queries_of_runs(read, store, kind, runs):
                _count(sums, arms, store, queries)
            totals.update(sums)
            cases.append(sums)
    table = Table("Means of a run:", ["measured", CHUNKS, SOURCES], list(_rows(totals, cases)))
    figures = [
        Figure(what, "all", f"{totals[what]:,} of {totals['runs']:,}", reached=totals[what] == totals["runs"])
        for what in (WHOLE, FEWER)
    ]
    notes = [f"{figure.what[0].upper()}{figure.what[1:]}: {figure.measured}." for figure in figures]
    return Result("Files", ABOUT.format(runs=runs), figures, [table], notes)


def _count(sums: Counter[str], arms: Mapping[tuple[str, str], Arm], store: Store, queries: Sequence[str]) -> None:
    found = {str(document.id): document for query in queries for document in store.found(query, K)}
    sentences = list(_found_sentences(store, [store.places[one] for one in found]))
    sums["runs"] += 1
    sums["sentences"] += len(sentences)
    for (kind, when), arm in arms.items():
        added, sent, written = arm.run(queries)
        sums[f"tokens {kind} {when}"] += added
        sums[f"input {kind} {when}"] += sent
        if when == END:
            continue
        sums[f"files {kind}"] += len(written)
        pieces = {piece for text in written.values() for piece in _pieces(text)}
        sums[f"torn {kind}"] += sum(not any(one in piece for piece in pieces) for one in sentences)
        if kind == SOURCES:
            texts = {shown_as(document.page_content) for document in found.values()}
            sums[WHOLE] += all(any(one in piece for piece in pieces) for one in texts)
            sums[FEWER] += len(written) == len({document.metadata["source"] for document in found.values()})


def _rows(totals: Counter[str], cases: Sequence[Counter[str]]) -> Iterator[list[str]]:
    def row(name: str, base: str, shown: str, ours: Callable[[Counter[str]], float]) -> list[str]:
        low, high = (shown.format(one(map(ours, cases))) for one in (min, max))
        return [name, base, f"{shown.format(ours(totals))} ({low} to {high})"]

    base = f"{totals[f'files {CHUNKS}'] / totals['runs']:.1f}"
    yield row("files", base, "{:.1f}", lambda sums: sums[f"files {SOURCES}"] / sums["runs"])
    base = f"{totals[f'torn {CHUNKS}'] / totals['sentences']:.1%}"
    torn = "found sentences that no file has in one piece"
    yield row(torn, base, "{:.1%}", lambda sums: sums[f"torn {SOURCES}"] / sums["sentences"])
    names = {"tokens": "tokens of tool calls and results", "input": "input tokens of all model calls"}
    for (what, name), when in product(names.items(), (EACH, END)):
        base = f"{totals[f'{what} {CHUNKS} {when}'] / totals['runs']:,.0f}"
        relative = partial(_relative, f"{what} {SOURCES} {when}", f"{what} {CHUNKS} {when}")
        yield row(f"{name}, read {when}", base, "× {:.2f}", relative)


def _relative(what: str, other: str, sums: Counter[str]) -> float:
    return sums[what] / sums[other]


def _pieces(text: str) -> list[str]:
    """The pieces of a file, without white space and numbers."""
    return ["".join(_LABEL.sub("", shown).split()) for shown in text.split("\n[…]\n")]


def _found_sentences(store: Store, places: Iterable[Place]) -> Iterator[str]:
    """The sentences of which all characters were found, as `_pieces` has them."""
    of_source: dict[str, list[tuple[int, int]]] = {}
    for place in sorted(places):
        of_source.setdefault(place.source, []).append((place.start, place.end))
    for source, spans in of_source.items():
        text = store.texts[source]
        found = bytearray(len(text))
        for start, end in spans:
            found[start:end] = b"\1" * (end - start)
        for sentence in _SENTENCE.finditer(text):
            start, end = sentence.span()
            if all(found[at] or text[at].isspace() for at in range(start, end)):
                yield shown_as(sentence[0])
