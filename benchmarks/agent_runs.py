"""Agents of `create_agent` that search four times, with a scripted chat model that records its requests."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import cycle
from math import log
from random import Random
from typing import Any, NamedTuple

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import create_retriever_tool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter
from pydantic import Field

from benchmarks.data_sets import DataSet
from benchmarks.langchain_embeddings import LocalEmbeddings
from oprag.agents.layouts import Layout
from oprag.langchain import OrderPreservingMiddleware, create_search_tool

__all__ = [
    "ARMS",
    "COMPACT",
    "DELTA",
    "DIFFERENT",
    "KINDS",
    "PLAIN",
    "REFORMULATED",
    "SEARCHES",
    "TUTORIAL",
    "AgentRun",
    "Arm",
    "Place",
    "Request",
    "ScriptedModel",
    "Store",
    "queries_of_runs",
]

SEARCHES = 4
CHUNK, OVERLAP = 1000, 200  # characters
PLAIN, TUTORIAL, DELTA, COMPACT = "retriever tool", "tutorial tool", "delta", "compact"
ARMS = (PLAIN, TUTORIAL, DELTA, COMPACT)
DIFFERENT, REFORMULATED = "different", "reformulated"
KINDS = (DIFFERENT, REFORMULATED)
_LAYOUTS: Mapping[str, Layout] = {DELTA: "delta", COMPACT: "compact"}
_NEW_WORDS = 3
_STOP_WORDS = """
    a about after all also an and any are as at be because been before being between both but by can could did do does
    doing during each for from had has have he her him his how i if in into is it its itself me more most my no not of
    on or other our out over she should so some such than that the their them then there these they this those through
    to under until up was we were what when where which while who whom whose why will with would you your
"""


class Place(NamedTuple):
    """Where a chunk is in its source."""

    source: str
    start: int
    end: int


class Store:
    """The chunks of all documents of a set in an `InMemoryVectorStore`, and the true place of each by its id.

    Each search is made once and cached, so all agents get the same documents.
    """

    def __init__(
        self, texts: Mapping[str, str], embeddings: LocalEmbeddings, *, add_start_index: bool, overlap: int = OVERLAP
    ) -> None:
        splitter = RecursiveCharacterTextSplitter(chunk_size=CHUNK, chunk_overlap=overlap, add_start_index=True)
        chunks = splitter.create_documents(list(texts.values()), [{"source": source} for source in texts])
        places = [_place(chunk, texts) for chunk in chunks]
        if not add_start_index:
            chunks = [Document(chunk.page_content, metadata={"source": chunk.metadata["source"]}) for chunk in chunks]
        self.texts = texts
        self.vectors = InMemoryVectorStore(embeddings)
        self.places = dict(zip(self.vectors.add_documents(chunks), places, strict=True))
        self._words = Counter(word for chunk in chunks for word in set(_words(chunk.page_content)))
        search = self.vectors._similarity_search_with_score_by_vector
        known: dict[Any, Any] = {}

        def remembered(embedding: list[float], k: int = 4, filter: Any = None) -> Any:
            key = (*embedding, k)
            if filter is not None or key not in known:
                known[key] = search(embedding, k, filter)
            return list(known[key])

        # On the store itself: a subclass might search in another way, and oprag would not use its vectors.
        self.vectors._similarity_search_with_score_by_vector = remembered  # type: ignore[method-assign]

    def found(self, query: str, k: int) -> list[Document]:
        """The documents for a query, best first."""
        return self.vectors.similarity_search(query, k=k)

    def reformulations(self, question: str) -> list[str]:
        """The question and three reformulations, made without a model."""
        stop_words = _STOP_WORDS.split()
        keywords = [word for word in dict.fromkeys(_words(question)) if word not in stop_words] or _words(question)
        rarest = sorted(keywords, key=lambda word: self._words[word])[: max(2, (len(keywords) + 1) // 2)]
        counts = Counter(_words(self.found(question, 1)[0].page_content))
        telling = sorted(
            (word for word in counts if word.isalpha() and word not in keywords and word not in stop_words),
            key=lambda word: (-counts[word] * log(len(self.places) / self._words[word]), word),
        )
        return [
            question,
            " ".join(keywords),
            " ".join(word for word in keywords if word in rarest),
            " ".join([*keywords, *telling[:_NEW_WORDS]]),
        ]


def queries_of_runs(data: DataSet, store: Store, kind: str, runs: int) -> list[list[str]]:
    """The queries of each run: four questions about one document, or one question in four forms."""
    chance = Random(1)
    by_document: defaultdict[str, list[str]] = defaultdict(list)
    for question in data.questions:
        if question.text not in by_document[question.document_id]:
            by_document[question.document_id].append(question.text)
    documents = [texts for texts in by_document.values() if len(texts) >= SEARCHES]
    for texts in documents:
        chance.shuffle(texts)
    drawn = zip(cycle(documents), range(runs), strict=False)
    if kind == DIFFERENT:
        return [chance.sample(texts, SEARCHES) for texts, _ in drawn]
    return [store.reformulations(texts[number // len(documents) % len(texts)]) for texts, number in drawn]


class Request(NamedTuple):
    """A request to a chat model: its whole text, tool definitions first, and its messages."""

    text: str
    messages: Sequence[BaseMessage]

    @property
    def results(self) -> list[ToolMessage]:
        """The search results among the messages."""
        return [message for message in self.messages if isinstance(message, ToolMessage)]


class ScriptedModel(BaseChatModel):
    """Searches for the given queries, step by step, and then answers."""

    steps: list[list[str]] = Field(default_factory=list)
    requests: list[Request] = Field(default_factory=list)
    tools: str = ""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> ScriptedModel:
        self.tools = json.dumps([convert_to_openai_tool(one) for one in tools], ensure_ascii=False)
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.requests.append(Request("\n".join([self.tools, *map(_written, messages)]), list(messages)))
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages))])

    def reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """The next step, or the answer."""
        turn = sum(isinstance(message, AIMessage) for message in messages)
        if turn == len(self.steps):
            return AIMessage("Done.")
        calls = [
            {"name": "search", "args": {"query": query}, "id": f"call_{turn}_{number}"}
            for number, query in enumerate(self.steps[turn])
        ]
        return AIMessage("", tool_calls=calls)


class AgentRun(NamedTuple):
    """One run of an agent: its requests, and its state at the end."""

    requests: Sequence[Request]
    state: Mapping[str, Any]


class Arm:
    """An agent with one kind of search tool."""

    def __init__(self, name: str, store: Store, k: int) -> None:
        self.name = name
        self._model = ScriptedModel()
        self._agent = create_agent(self._model, [_tool(name, store.vectors, k)], middleware=_middleware(name))

    def run(self, steps: Sequence[Sequence[str]]) -> AgentRun:
        """Run the agent on these queries, those of a step in parallel calls."""
        self._model.steps, self._model.requests = [list(step) for step in steps], []
        state = self._agent.invoke({"messages": [HumanMessage(steps[0][0])]})
        return AgentRun(self._model.requests, state)


def _tool(name: str, store: InMemoryVectorStore, k: int) -> Any:
    if name == PLAIN:
        retriever = store.as_retriever(search_kwargs={"k": k})
        return create_retriever_tool(retriever, "search", "Search the documents.")
    if name == TUTORIAL:
        return _tutorial_tool(store, k)
    return create_search_tool(store, k=k)


def _tutorial_tool(store: InMemoryVectorStore, k: int) -> Any:
    """The tool of LangChain's tutorial for RAG agents, with a different name and k."""

    @tool("search", response_format="content_and_artifact")
    def retrieve_context(query: str) -> tuple[str, list[Document]]:
        """Retrieve information to help answer a query."""
        retrieved_docs = store.similarity_search(query, k=k)
        serialized = "\n\n".join((f"Source: {doc.metadata}\nContent: {doc.page_content}") for doc in retrieved_docs)
        return serialized, retrieved_docs

    return retrieve_context


def _middleware(name: str) -> list[Any]:
    return [OrderPreservingMiddleware(layout=_LAYOUTS[name])] if name in _LAYOUTS else []


def _written(message: BaseMessage) -> str:
    """A message as text, with everything that is sent to a provider."""
    calls = [[call["id"], call["name"], call["args"]] for call in getattr(message, "tool_calls", ())]
    parts = [message.type, getattr(message, "tool_call_id", ""), str(message.content)]
    return "\n".join([*filter(None, parts), *(json.dumps(call, ensure_ascii=False) for call in calls)])


def _place(chunk: Document, texts: Mapping[str, str]) -> Place:
    source, start = chunk.metadata["source"], chunk.metadata["start_index"]
    end = start + len(chunk.page_content)
    if texts[source][start:end] != chunk.page_content:
        raise ValueError(f"the text at {start} of {source} is not that of its chunk")
    return Place(source, start, end)


def _words(text: str) -> list[str]:
    return re.findall(r"\w[\w'-]*", text.lower())
