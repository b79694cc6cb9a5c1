"""The output of a chain, whole or in the pieces in which LangChain's chains stream it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables.utils import AddableDict

from oprag.context import Context
from oprag.langchain.cited_messages import cited_message
from oprag.langchain.documents import documents_of
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.methods.answer import Answer
from oprag.methods.run import Shown

__all__ = ["ChainOutput"]


@dataclass
class ChainOutput:
    """Builds the output of a chain, whole or in pieces, from the values that the driver emits.

    Also appends the answer to `answers`.
    """

    given: Mapping[str, Any]
    retriever: OrderPreservingRetriever
    output_key: str
    documents_key: str | None
    citations_key: str | None
    message_key: str | None
    answers: list[Answer]
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
            self.streamed = self.streamed or bool(shown)
            return AddableDict({self.output_key: shown}) if shown else None
        if isinstance(shown, Answer):
            self.answers.append(shown)
            rest = ({} if self.streamed else {self.output_key: _value(shown)}) | self._cited(shown)
            return AddableDict(rest) if rest else None
        new = self._new_in(shown)
        first, self.searched = not self.searched, True
        return AddableDict({self.documents_key: new}) if self.documents_key is not None and (new or first) else None

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The whole output."""
        self.answers.append(answer)
        output = dict(self.given)
        if self.documents_key is not None:
            output[self.documents_key] = [document for context in answer.contexts for document in self._new_in(context)]
        return output | {self.output_key: _value(answer)} | self._cited(answer)

    def _cited(self, answer: Answer) -> dict[str, Any]:
        cited: dict[str, Any] = {}
        if self.citations_key is not None:
            cited[self.citations_key] = [citation.to_dict() for citation in answer.citations]
        if self.message_key is not None:
            cited[self.message_key] = cited_message(answer)
        return cited

    def _new_in(self, context: Context) -> list[Document]:
        """The documents that are not in earlier contexts; variants of a question retrieve many documents again."""
        # A plain list, as in the output of LangChain's chains.
        documents = list(documents_of(context, annotate=self.retriever.annotate, stitch=self.retriever.stitch))
        if self.documents:
            known = set(map(_identity, self.documents))
            documents = [document for document in documents if _identity(document) not in known]
        self.documents += documents
        return documents


def _value(answer: Answer) -> Any:
    return answer.text if answer.parsed is None else answer.parsed


def _identity(document: Document) -> tuple[Any, ...]:
    return document.id, document.page_content, str(document.metadata)
