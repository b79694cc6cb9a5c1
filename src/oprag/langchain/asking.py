"""From the input of a chain to a question at work."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.utils import AddableDict

from oprag.errors import OptionError, QueryError
from oprag.langchain.backend import LangChainBackend
from oprag.langchain.documents import documents_of
from oprag.langchain.messages import history_of, window_of
from oprag.masking import listed
from oprag.methods.answer import Answer
from oprag.methods.answering import answering
from oprag.methods.driver import Shown, drive, prepare
from oprag.methods.options import MethodOptions
from oprag.methods.task import Task
from oprag.steps import Limit, Steps

__all__ = ["Asked", "ChainOutput", "check_inputs", "limit_of", "merged", "question_in", "shared_limit", "task_of"]

# The inputs that mean something beside the question.
_INPUTS = ("chat_history", "choices", "filter")

shared_limit: ContextVar[Limit | None] = ContextVar("shared_limit", default=None)
"""The limit of the batch that a question belongs to: four questions with four calls each would make sixteen."""


def limit_of(config: RunnableConfig, options: MethodOptions) -> Limit:
    """How many calls a question may make at the same time: the caller's number in place of the chain's."""
    shared = shared_limit.get()
    if shared is None:
        return Limit(config.get("max_concurrency") or options.max_concurrency)
    # A chain inside of this one would wait for the calls that wait for it.
    shared_limit.set(None)
    return shared


def question_in(given: Any, key: str) -> dict[str, Any]:
    """The input of a chain as a mapping; a plain string is the question.

    Raises:
        QueryError: It is neither, or has no question.
    """
    if isinstance(given, str):
        return {key: given}
    if not isinstance(given, Mapping):
        raise QueryError(f"the input must be a question or a mapping with {key!r}, got {type(given).__name__}", given)
    if key not in given:
        raise QueryError(f"the input has no {key!r}; it has {listed(given)}", given)
    return dict(given)


def check_inputs(inputs: Mapping[Any, Any], understood: Collection[str | None], options: Collection[str]) -> None:
    """Refuse an input that nobody would look at, and that looks like one of ours.

    Any other one, and one without a value, is passed on to the output, as in LangChain's chains.

    Args:
        inputs: The inputs.
        understood: The names that somebody looks at.
        options: The names of options.

    Raises:
        OptionError: An input has the name of an option, or nearly that of an input.
    """
    given = {name for name, value in inputs.items() if value is not None}
    for name in inputs:
        if not isinstance(name, str) or name not in given or name in _INPUTS or name in understood:
            continue
        # Names of one word, such as "order", are those of anybody's own inputs too.
        if name in options and (name == "k" or "_" in name):
            raise OptionError(
                f"the input has {name!r}, which would be ignored: it is an option; set it when the chain or its "
                "retriever is made (for a single question there is 'filter')",
                name,
            )
        import difflib

        close = difflib.get_close_matches(name.casefold(), _INPUTS, n=1, cutoff=0.85)
        # A longer name, such as "chat_history_id", is another input, and so is "choice" beside the choices.
        if close and len(name) <= len(close[0]) + 1 and close[0] not in given:
            raise OptionError(f"the input has {name!r}, which would be ignored; did you mean {close[0]!r}?", name)


def merged(pieces: Iterable[Any]) -> Any:
    """An input that came in pieces, as an earlier step of a chain streams them."""
    whole: Any = None
    for piece in pieces:
        if whole is None:
            whole = piece
        elif isinstance(whole, Mapping) and isinstance(piece, Mapping):
            whole = AddableDict(whole) + AddableDict(piece)
        else:
            whole = whole + piece  # in place, a list of the caller's would grow
    return whole


def task_of(inputs: Mapping[str, Any], key: str, options: MethodOptions, backend: LangChainBackend) -> Task:
    """The question and what belongs to it.

    Raises:
        QueryError: The question is empty, or what belongs to it is not what it should be.
    """
    choices = inputs.get("choices") or ()
    return Task(
        inputs[key],
        options,
        backend.context_options,
        choices=choices,
        chat_history=history_of(inputs.get("chat_history")),
        inputs={name: value for name, value in inputs.items() if name != key},
        question_key=key,
        window=window_of(backend.llm, backend.config),
    )


@dataclass
class Asked:
    """A question at work.

    Attributes:
        task: The question and how to answer it.
        backend: What answering takes.
        limit: How many calls may be made at the same time.
    """

    task: Task
    backend: LangChainBackend
    limit: Limit

    def driven(self, *, streaming: bool) -> Steps[Answer]:
        """Answer it; emits contexts, pieces and the answer."""
        stop_early = self.task.options.on_error == "raise"
        return drive(answering(self.task), self.backend, self.limit, streaming=streaming, stop_early=stop_early)

    def prepared(self) -> Steps[None]:
        """Find the context before the clock of a method runs."""
        return prepare(self.task, self.backend)


class ChainOutput:
    """A chain's output, whole or in pieces, made of what a driver shows.

    Args:
        inputs: The input of the chain.
        output_key: The key of the answer.
        documents_key: The key of the documents; None leaves them out.
        citations_key: The key of what is cited; None leaves it out.
        stitch: Whether the documents are whole passages.
        annotate: Whether they are copies that say how they were placed.
    """

    def __init__(
        self,
        inputs: Mapping[str, Any],
        output_key: str,
        documents_key: str | None,
        citations_key: str | None,
        *,
        stitch: bool,
        annotate: bool,
    ) -> None:
        self.answer: Answer | None = None
        self._inputs = inputs
        self._output_key = output_key
        self._documents_key = documents_key
        self._citations_key = citations_key
        self._stitch = stitch
        self._annotate = annotate
        self._documents: list[Document] = []
        self._streamed = self._searched = False

    def inputs(self) -> AddableDict:
        """The first piece: the input, without what is going to be replaced."""
        replaced = (self._output_key, self._documents_key, self._citations_key)
        return AddableDict({key: value for key, value in self._inputs.items() if key not in replaced})

    def piece(self, shown: Shown) -> AddableDict | None:
        """What this adds to the output, if anything."""
        if isinstance(shown, str):
            if not shown:
                return None
            self._streamed = True
            return AddableDict({self._output_key: shown})
        if isinstance(shown, Answer):
            self.answer = shown
            rest = ({} if self._streamed else {self._output_key: _value(shown)}) | self._cited(shown)
            return AddableDict(rest) if rest else None
        new = self._new(documents_of(shown, annotate=self._annotate, stitch=self._stitch))
        first, self._searched = not self._searched, True
        self._documents += new
        if self._documents_key is None or not (new or first):
            return None
        return AddableDict({self._documents_key: new})

    def whole(self, kept: list[Answer] | None = None) -> dict[str, Any]:
        """All of it; the answer itself goes into the list, if there is one."""
        assert self.answer is not None  # noqa: S101 - the last thing that a driver shows
        if kept is not None:
            kept.append(self.answer)
        output = dict(self._inputs)
        if self._documents_key is not None:
            output[self._documents_key] = self._documents
        return output | {self._output_key: _value(self.answer)} | self._cited(self.answer)

    def _cited(self, answer: Answer) -> dict[str, Any]:
        if self._citations_key is None:
            return {}
        return {self._citations_key: [citation.to_dict() for citation in answer.citations]}

    def _new(self, documents: list[Document]) -> list[Document]:
        """The documents that no earlier context had: other questions find the same ones again."""
        if not self._documents:
            return documents
        known = set(map(_identity, self._documents))
        return [document for document in documents if _identity(document) not in known]


def _value(answer: Answer) -> Any:
    return answer.text if answer.parsed is None else answer.parsed


def _identity(document: Document) -> tuple[Any, ...]:
    return document.id, document.page_content, str(document.metadata)
