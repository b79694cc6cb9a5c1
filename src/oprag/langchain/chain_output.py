"""The output of a chain, whole or in the pieces in which LangChain's chains stream it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables.utils import AddableDict

from oprag._internal.sync_async import Emit, Steps
from oprag.langchain.cited_messages import cited_message
from oprag.langchain.documents import documents_of
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.methods.answer import Answer
from oprag.methods.run import Shown

__all__ = ["ChainOutput", "emitting"]


def emitting(piece: Callable[[Shown], Any], steps: Steps[Answer]) -> Steps[Answer]:
    """Convert the values that the steps emit to pieces of the output; drop empty pieces."""
    try:
        step = next(steps)
        while True:
            result = None
            try:
                if not isinstance(step, Emit):
                    result = yield step
                elif (made := piece(step.value)) is not None:
                    yield Emit(made)
            except BaseException as error:  # noqa: BLE001 - passed to the steps, which clean up and raise
                step = steps.throw(error)
            else:
                step = steps.send(result)
    except StopIteration as stop:
        answer: Answer = stop.value
        return answer


@dataclass
class ChainOutput:
    """Builds the output of a chain, whole or in pieces, from the values that the driver emits."""

    given: Mapping[str, Any]
    retriever: OrderPreservingRetriever
    output_key: str
    documents_key: str | None
    citations_key: str | None
    message_key: str | None
    documents: list[Document] = field(default_factory=list)
    searched: bool = False
    streamed: bool = False

    def inputs(self) -> AddableDict:
        """The first piece: the input, without keys that later pieces replace."""
        replaced = (self.output_key, self.documents_key, self.citations_key, self.message_key)
        return AddableDict({key: value for key, value in self.given.items() if key not in replaced})

    def piece(self, shown: Shown) -> AddableDict | None:
        """The next piece of the output; None if it is empty."""
        if isinstance(shown, str):
            if not shown:
                return None
            self.streamed = True
            return AddableDict({self.output_key: shown})
        if isinstance(shown, Answer):
            rest = ({} if self.streamed else {self.output_key: _value(shown)}) | self._cited(shown)
            return AddableDict(rest) if rest else None
        # A plain list, as in the output of LangChain's chains.
        new = self._new(list(documents_of(shown, annotate=self.retriever.annotate, stitch=self.retriever.stitch)))
        first, self.searched = not self.searched, True
        self.documents += new
        if self.documents_key is None or not (new or first):
            return None
        return AddableDict({self.documents_key: new})

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The whole output."""
        output = dict(self.given)
        if self.documents_key is not None:
            output[self.documents_key] = self.documents
        return output | {self.output_key: _value(answer)} | self._cited(answer)

    def _cited(self, answer: Answer) -> dict[str, Any]:
        cited: dict[str, Any] = {}
        if self.citations_key is not None:
            cited[self.citations_key] = [citation.to_dict() for citation in answer.citations]
        if self.message_key is not None:
            cited[self.message_key] = cited_message(answer)
        return cited

    def _new(self, documents: list[Document]) -> list[Document]:
        """The documents that are not in earlier contexts; variants of a question retrieve many documents again."""
        if not self.documents:
            return documents
        known = set(map(_identity, self.documents))
        return [document for document in documents if _identity(document) not in known]


def _value(answer: Answer) -> Any:
    return answer.text if answer.parsed is None else answer.parsed


def _identity(document: Document) -> tuple[Any, ...]:
    return document.id, document.page_content, str(document.metadata)
