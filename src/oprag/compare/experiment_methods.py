"""Methods that exist only in experiments: own pipelines, and control methods without a context or a model."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache, reduce
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

from oprag._internal.masking import describe
from oprag.errors import ExperimentError, ModelError
from oprag.methods.answer import Answer, Completion, Result, Usage
from oprag.methods.prompts import Message, Prompt, TextTemplate
from oprag.methods.registry import MethodFunction
from oprag.methods.run import Body, Generate, Retrieve
from oprag.methods.task import Task
from oprag.pipeline.context_report import METADATA_KEY

__all__ = ["CONTROLS", "PIPELINE", "UNKNOWN_USAGE", "FoundChunk", "Pipeline", "kind_of", "pipeline"]

UNKNOWN_USAGE = Usage(0, 0, 0, estimated=True)
"""The usage of an answer whose pipeline does not report it; results show it as missing, never as 0."""

_ANSWERS = ("answer", "result", "output", "response")
_CHUNKS = ("context", "source_documents", "documents", "source_nodes")
_SOURCES = ("source", "file_path", "file_name", "document_id")


class FoundChunk(NamedTuple):
    """A chunk that a pipeline returned: its text, and the source, offset and spans in its metadata, if any."""

    text: str
    source: str | None
    start: int | None
    spans: Sequence[tuple[int, int]] = ()  # of the parts of a stitched passage

    def places_in(self, documents: Mapping[str, str]) -> list[tuple[str, int, int]]:
        """The chunk's places in texts: its spans or its offset, else where its text first occurs.

        White space may differ: a stitched passage has a separator where the splitter stripped white space.
        """
        wanted = _squeezed(self.text)
        # The document that its source names comes first.
        names = sorted(documents, key=lambda name: not (self.source or "").endswith(name)) if wanted else ()
        for name in names:
            parts = [_squeezed(documents[name][start:end]) for start, end in self.spans]
            if parts and all(part and part in wanted for part in parts):
                return [(name, start, end) for start, end in self.spans]
        for name in names:
            start = -1 if self.start is None else self.start
            if start < 0 or not documents[name].startswith(self.text, start):
                start = documents[name].find(self.text)
            if start >= 0:
                return [(name, start, start + len(self.text))]
        for name in names:
            if (first := _squeezed(documents[name]).find(wanted)) >= 0:
                offsets = [offset for offset, character in enumerate(documents[name]) if not character.isspace()]
                return [(name, offsets[first], offsets[first + len(wanted) - 1] + 1)]
        return []


def _squeezed(text: str) -> str:
    """A text without white space."""
    return "".join(text.split())


@dataclass(frozen=True)
class Pipeline:
    """An own method of an experiment: one setting that is not crossed with the axes.

    It is called with the question (and its choices, one per line), in several threads unless `max_concurrency=1`. It
    returns the answer, or the answer and the chunks that it was made from. Tokens are those that its model calls report
    to LangChain's or LlamaIndex's callbacks; else they are unknown.

    Args:
        run: A function from a question to an answer, or to a pair of an answer and a list of chunks; a LangChain
            `Runnable` that takes a string; or a LlamaIndex query engine. Chunks are texts, LangChain documents,
            LlamaIndex nodes or `oprag.Chunk`.
        version: Version of the pipeline. Answers are stored under its name and version, so change it with the code.

    Raises:
        ExperimentError: `run` cannot be called, or the version is empty.
    """

    run: Any = field(repr=False)
    version: str | int

    def __post_init__(self) -> None:
        if isinstance(self.run, type) or not callable(_call_of(self.run)):
            expected = "a function from a question to an answer, a LangChain runnable or a LlamaIndex query engine"
            raise ExperimentError(f"a pipeline must be {expected}, got {describe(self.run)}", self.run)
        if inspect.iscoroutinefunction(self.run):
            raise ExperimentError("a pipeline must not be async, since questions are asked in threads", self.run)
        version: Any = self.version
        if isinstance(version, bool) or not isinstance(version, str | int) or not str(version).strip():
            raise ExperimentError(
                f"the version of a pipeline must be a string or an integer, got {describe(version)}", version
            )

    def complete(self, prompt: Prompt) -> Completion:
        """Run the pipeline on a question; its errors are raised.

        Args:
            prompt: The question, as the last message.

        Returns:
            JSON with the answer and the chunks.
        """
        counted = _counter()()
        token = _COUNTED.set(counted)
        try:
            text, chunks = _parts(_call_of(self.run)(prompt.messages[-1].content))
        finally:
            _COUNTED.reset(token)
        found = None if chunks is None else [_chunk_of(one) for one in chunks]
        return Completion(json.dumps({"answer": text, "chunks": found}, ensure_ascii=False), usage=counted.usage)


def _call_of(run: Any) -> Callable[[str], Any]:
    # Query engines of LlamaIndex and runnables of LangChain may be callable, too.
    call: Callable[[str], Any] = getattr(run, "invoke", None) or getattr(run, "query", None) or run
    return call


def _parts(given: Any) -> tuple[str, Sequence[Any] | None]:
    """The answer and the chunks of what a pipeline returned."""
    if isinstance(given, tuple) and len(given) == 2 and not hasattr(given, "_fields"):
        text, chunks = given
        if not isinstance(chunks, list | tuple):
            raise ModelError(f"the chunks of a pipeline must be a list, got {describe(chunks)}", chunks)
        return _parts(text)[0], chunks
    if isinstance(given, Answer):
        return given.text, None if given.context is None else given.context.kept
    if isinstance(given, Mapping):
        texts = [text for name in _ANSWERS if (text := _text_of(given.get(name))) is not None]
        if texts:
            chunks = next((given[name] for name in _CHUNKS if isinstance(given.get(name), list | tuple)), None)
            return texts[0], chunks
    if hasattr(given, "source_nodes"):
        return str(given), given.source_nodes
    if (text := _text_of(given)) is None:
        raise ModelError(
            f"a pipeline must return an answer, or an answer and a list of chunks, got {describe(given)}", given
        )
    return text, None


def _text_of(given: Any) -> str | None:
    """The text of a string or of a model's message."""
    text = given if isinstance(given, str) else getattr(given, "text", getattr(given, "content", None))
    return str(text) if isinstance(text, str) else None


def _chunk_of(given: Any) -> FoundChunk:
    node = getattr(given, "node", given)
    text = given if isinstance(given, str) else getattr(node, "page_content", getattr(node, "text", None))
    if not isinstance(text, str):
        raise ModelError(f"a chunk must be a text, a document, a node or a Chunk, got {describe(given)}", given)
    metadata = getattr(node, "metadata", None) or {}
    source = getattr(node, "source", None) or next((metadata[name] for name in _SOURCES if metadata.get(name)), None)
    start = metadata.get("start_index", getattr(node, "start_char_idx", None))
    start = start if type(start) is int else None
    return FoundChunk(str(text), None if source is None else str(source), start, _spans_of(metadata.get(METADATA_KEY)))


def _spans_of(about: Any) -> list[tuple[int, int]]:
    """The spans of a passage that oprag stitched; empty if some are relative to a page."""
    spans = about.get("spans", ()) if isinstance(about, Mapping) else ()
    return [(span["start"], span["end"]) for span in spans] if all(span["page"] is None for span in spans) else []


class _Counted:
    """The tokens that the model calls of one answer report to the callbacks of LangChain and LlamaIndex."""

    def __init__(self) -> None:
        self._calls: list[tuple[Any, Usage | None]] = []

    def add(self, usage: Usage | None, reply: Any) -> None:
        """Add a model call with its reply; the usage is None if it did not report its tokens."""
        # LlamaIndex tells of one reply twice where a chat is a completion.
        if reply is None or not any(one is reply for one, _ in self._calls):
            self._calls.append((reply, usage))

    @property
    def usage(self) -> Usage:
        """The sum; unknown without a call, or if one of them did not report it."""
        known = [usage for _, usage in self._calls if usage is not None]
        return reduce(Usage.plus, known) if known and len(known) == len(self._calls) else UNKNOWN_USAGE


_COUNTED: ContextVar[Any] = ContextVar("oprag_pipeline_usage", default=None)


@cache
def _counter() -> Callable[[], Any]:
    """The class that counts the tokens of an answer; registered with the frameworks that are installed."""
    if find_spec("llama_index") is not None:
        _listen_to_llama_index()
    return _langchain_counter() if find_spec("langchain_core") is not None else _Counted


def _langchain_counter() -> Any:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.tracers.context import register_configure_hook

    from oprag.langchain.backend import usage_of

    class Handler(_Counted, BaseCallbackHandler):
        def on_llm_end(self, response: Any, **_: Any) -> None:
            message = getattr(response.generations[0][0], "message", None) if response.generations else None
            self.add(None if message is None else usage_of(message), message)

    # LangChain adds the value of the variable to the callbacks of every call in the context.
    register_configure_hook(_COUNTED, inheritable=True)
    return Handler


def _listen_to_llama_index() -> None:
    from llama_index.core.instrumentation.event_handlers import BaseEventHandler
    from llama_index.core.instrumentation.events.llm import LLMChatEndEvent, LLMCompletionEndEvent
    from llama_index_instrumentation import get_dispatcher

    from oprag.llama_index.backend import usage_of

    class Handler(BaseEventHandler):
        @classmethod
        def class_name(cls) -> str:
            return "OpragPipelineUsage"

        def handle(self, event: Any, **_: Any) -> None:
            if isinstance(event, LLMChatEndEvent | LLMCompletionEndEvent) and (counted := _COUNTED.get()) is not None:
                counted.add(usage_of(event.response), getattr(event.response, "raw", None))

    get_dispatcher().add_event_handler(Handler())


PIPELINE = "pipeline:"
"""Prefix of the method of an own pipeline; its name follows."""

_CLOSED_BOOK = TextTemplate("Question: {question}\n{instruction}")


class MethodKind(NamedTuple):
    """The input and output of a method."""

    reads: Literal["context", "documents"] | None = "context"  # documents: read whole, regardless of the token budget
    writes: bool = True  # whether a model is called for an answer
    own: bool = False  # whether it is an own pipeline, which may return chunks


_KINDS = {
    "closed_book": MethodKind(reads=None),
    "context_only": MethodKind(writes=False),
    "long_context": MethodKind(reads="documents"),
}


def kind_of(method: str) -> MethodKind:
    """The input and output of a method; custom methods read a context and write an answer."""
    return MethodKind(reads=None, own=True) if method.startswith(PIPELINE) else _KINDS.get(method, MethodKind())


def closed_book(task: Task) -> Body:
    """Answer without a context, so that what the model has memorized is not credited to retrieval."""
    values = {"question": task.asked, "instruction": task.instruction}
    (reply,) = yield Generate((Prompt(_CLOSED_BOOK.messages(values), "closed_book"),), final=True)
    return Result(reply.text, (), reply.parsed)


def context_only(task: Task) -> Body:
    """Retrieve without calling a model, to score only the contexts."""
    (context,) = yield Retrieve((task.question,))
    return Result("", (context,), passages=context.passages)


def pipeline(task: Task) -> Body:
    """Ask an own pipeline; the chunks that it returned are the parsed object of the answer."""
    (reply,) = yield Generate((Prompt((Message("user", task.asked),), "pipeline"),), final=True)
    given = json.loads(reply.text)
    chunks = given["chunks"]
    return Result(given["answer"], (), None if chunks is None else [FoundChunk(*one) for one in chunks])


CONTROLS: Mapping[str, MethodFunction] = {"closed_book": closed_book, "context_only": context_only}
"""Methods that exist only in experiments, by name."""
