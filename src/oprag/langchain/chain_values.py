"""The inputs of a chain, checked and passed to a chain that retrieves, and its output, whole or in pieces."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnableSequence
from langchain_core.runnables.utils import AddableDict

from oprag._internal.masking import listed
from oprag.adapters.fields import METHOD_OPTIONS, OPTIONS
from oprag.context import Context
from oprag.errors import OptionError, QueryError
from oprag.langchain.backend import history_of, messages_of
from oprag.langchain.cited_messages import cited_message
from oprag.langchain.documents import documents_of
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.langchain.wrapped import WITH_STEPS, walk
from oprag.methods.answer import Answer
from oprag.methods.run import Shown
from oprag.options import requires
from oprag.pipeline.context_report import METADATA_KEY

__all__ = ["ChainOutput", "OutputKeys", "checked_inputs", "with_inputs", "without_retrievers"]

# The inputs that the chain itself uses, in addition to the question.
_INPUTS = ("chat_history", "choices", "filter")
# Names of options, here and in LangChain.
_OPTIONS = frozenset((*OPTIONS, *METHOD_OPTIONS, "search_kwargs", "search_type", "score_threshold", "top_k", "fetch_k"))


def checked_inputs(given: Any, key: str, used: Collection[str] | None) -> dict[str, Any]:
    """The input of a chain as a mapping; one that looks like an option or a typo is refused unless it is `used`."""
    if isinstance(given, str):
        return {key: given}
    if not isinstance(given, Mapping):
        raise QueryError(f"the input must be a question or a mapping with {key!r}, got {type(given).__name__}", given)
    if key not in given:
        raise QueryError(f"the input does not contain {key!r}; it contains {listed(given)}", given)
    inputs = {name: value for name, value in given.items() if value is not None}
    for name in inputs if used is not None else ():
        if not isinstance(name, str) or name == key or name in _INPUTS or name in (used or ()):
            continue
        # Single words, such as "order", may be the user's own inputs.
        if name in _OPTIONS and (name == "k" or "_" in name):
            raise OptionError(
                f"the input contains the option {name!r}; set it when constructing the chain "
                "or its retriever (only 'filter' can be set for a single question)",
                name,
            )
        import difflib

        close = difflib.get_close_matches(name.casefold(), _INPUTS, n=1, cutoff=0.85)
        # A longer name, such as "chat_history_id", is not a typo. Neither is "choice" if "choices" is also given.
        if close and len(name) <= len(close[0]) + 1 and close[0] not in inputs:
            raise OptionError(f"the input contains the unknown key {name!r}; did you mean {close[0]!r}?", name)
    return dict(given)


def with_inputs(retriever: OrderPreservingRetriever, inputs: Mapping[str, Any], key: str) -> OrderPreservingRetriever:
    """The retriever for one input: as in LangChain's retrieval chains, the chain that it wraps receives all inputs."""
    assert isinstance(retriever.retriever, Runnable)  # noqa: S101 - checked by the caller

    given = dict(inputs)
    if history := history_of(given.pop("chat_history", None)):
        given["chat_history"] = messages_of(history)
    without_history = {name: value for name, value in given.items() if name != "chat_history"}

    def all_inputs(question: str) -> dict[str, Any]:
        # The conversation belongs to the user's question, not to the variants that a method generates.
        return {**(given if question == inputs[key] else without_history), key: question}

    changes: dict[str, Any] = {"retriever": RunnableSequence(RunnableLambda(all_inputs), retriever.retriever)}
    if given.get("filter") is not None:
        # The chain receives the filter among its inputs, not as an argument.
        for name in ("read_neighbors", "read_source"):
            if requires(function := getattr(retriever, name), "filter"):
                changes[name] = partial(function, filter=given["filter"])
    return retriever.model_copy(update=changes)


def without_retrievers(runnable: Any) -> bool:
    """Whether no step of a runnable is a retriever, to which LangChain passes the question without a filter."""
    return not any(isinstance(inner, BaseRetriever) for inner in walk(runnable, WITH_STEPS))


class OutputKeys(NamedTuple):
    """The keys of the output of a chain; None for what is left out."""

    answer: str
    documents: str | None
    citations: str | None = None
    message: str | None = None


@dataclass
class ChainOutput:
    """Builds the output of a chain, whole or in pieces; also appends the answer to `answers`."""

    given: Mapping[str, Any]
    retriever: OrderPreservingRetriever
    keys: OutputKeys
    answers: list[Answer] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    searched: bool = False

    def inputs(self) -> AddableDict:
        """The first piece: the input, without keys that later pieces replace."""
        return AddableDict({key: value for key, value in self.given.items() if key not in self.keys})

    def pieces(self, shown: Shown) -> Iterator[AddableDict]:
        """The next piece of the output, unless it is empty."""
        piece: dict[str, Any] = {}
        if isinstance(shown, str):
            piece = {self.keys.answer: shown} if shown else {}
        elif isinstance(shown, Answer):
            piece = self._answer(shown)
            if shown.parsed is None and shown.text:
                del piece[self.keys.answer]  # its text came in pieces
        else:
            new = self._new_in(shown)
            if self.keys.documents is not None and (new or not self.searched):
                piece = {self.keys.documents: new}
            self.searched = True
        if piece:
            yield AddableDict(piece)

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The whole output."""
        output = dict(self.given)
        if self.keys.documents is not None:
            for context in answer.contexts:
                self._new_in(context)
            output[self.keys.documents] = self.documents
        return output | self._answer(answer)

    def _answer(self, answer: Answer) -> dict[str, Any]:
        self.answers.append(answer)
        output: dict[str, Any] = {self.keys.answer: answer.text if answer.parsed is None else answer.parsed}
        if self.keys.citations is not None:
            output[self.keys.citations] = [citation.to_dict() for citation in answer.citations]
        if self.keys.message is not None:
            output[self.keys.message] = cited_message(answer)
        return output

    def _new_in(self, context: Context) -> list[Document]:
        """The documents that are not in earlier contexts; variants of a question retrieve many documents again."""
        # A plain list, as in the output of LangChain's chains.
        documents = list(documents_of(context, annotate=self.retriever.annotate, stitch=self.retriever.stitch))
        if self.documents:
            known = set(map(_identity, self.documents))
            documents = [document for document in documents if _identity(document) not in known]
        self.documents += documents
        return documents


def _identity(document: Document) -> tuple[Any, ...]:
    """What is the same for every question: neither scores nor ranks, which rerankers and `annotate` write."""
    stated = document.metadata.items() if document.id is None else ()
    stable = [
        f"{name}: {value}"
        for name, value in stated
        if name != METADATA_KEY and (isinstance(value, Integral) or not isinstance(value, Real))
    ]
    return document.id, document.page_content, *sorted(stable)
