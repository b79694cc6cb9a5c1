"""The documents in the result of a tool, in whatever form a tool, a server or another framework returns them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import ToolMessage

from oprag.agents.search_result_blocks import has_blocks

__all__ = ["IN_FILES", "documents_in", "is_saved_elsewhere", "text_forms", "unreadable_form"]

IN_FILES = "read them in the files below, and cite them by their numbers."
"""The end of the first line of a search result whose passages are in files."""
# As Deep Agents writes where it saved a long result, and as we write where passages are; the artifact stays in the
# message.
_SAVED = re.compile(
    r"Tool result too large, the result of this tool call \S+ was saved in the filesystem at this path: "
    rf"|[\d,]+ passages? found, [\d,]+ new: {re.escape(IN_FILES)}"
)
_PATH = re.compile(r"\S*/[^\s/]+\.\w{1,8}")
_SEARCH_NAME = re.compile(r"(?<![a-z])search|retriev", re.IGNORECASE)
# A key of every document in JSON; text without it is not parsed, as results of other tools can be long.
_KEY = re.compile(r'"(?:page_content|text)"')
# Tools of Deep Agents whose results are paths.
_FILE_TOOLS = frozenset({"ls", "glob", "grep", "write_file", "edit_file"})


def documents_in(message: ToolMessage) -> list[Document]:
    """The documents of a result; empty if it has none.

    They are a list in the artifact: LangChain's documents, LlamaIndex's nodes, or plain values of either, each alone or
    with its score. Or they are the only such list in a mapping, such as the `structured_content` of an MCP tool, or in
    text that is JSON.
    """
    if documents := _listed(message.artifact):
        return documents
    return _listed(_json(message)) if message.artifact is None else []


def text_forms(text: str) -> tuple[str, ...]:
    """A text as it is in a message: as it is, or in JSON."""
    return text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]


def is_saved_elsewhere(message: ToolMessage) -> bool:
    """Whether the text only says where another middleware saved the result, because it is long."""
    return bool(_SAVED.match(str(message.text)))


def unreadable_form(message: ToolMessage) -> str | None:
    """The form of a result that looks like one of a search, but whose documents cannot be read; None for others."""
    artifact, text = message.artifact, str(message.text).strip()
    if isinstance(artifact, list | tuple) and artifact and any(map(_looks_like_text, artifact)):
        return f"a list of {type(artifact[0]).__name__} that are not documents"
    if artifact is None and has_blocks(message.content):
        return "search_result blocks without documents"
    lines = text.splitlines()
    if lines and message.name not in _FILE_TOOLS and all(map(_PATH.fullmatch, lines)):
        return "paths of files"
    if text and artifact is None and _SEARCH_NAME.search(message.name or ""):
        return "text without documents"
    return None


def _listed(value: Any) -> list[Document]:
    """The documents of a list, or of the only list of documents in a mapping."""
    if isinstance(value, Mapping):
        lists = [found for one in value.values() if isinstance(one, list | tuple | Mapping) and (found := _listed(one))]
        return lists[0] if len(lists) == 1 else []
    if not isinstance(value, list | tuple):
        return []
    documents = [_document(one) for one in value]
    return [one for one in documents if one is not None] if None not in documents else []


def _document(value: Any) -> Document | None:
    if isinstance(value, tuple) and len(value) == 2:
        # A document with its score; the sequence of the list is the ranking.
        value = value[0]
    if isinstance(value, Document):
        return value
    # A node with its score.
    node = _part(value, "node")
    value = value if node is None else node
    text = next((one for name in ("page_content", "text") if isinstance(one := _part(value, name), str)), None)
    metadata = _part(value, "metadata")
    if text is None or not (isinstance(metadata, dict) or _part(value, "page_content") is not None):
        return None
    names = ("id", "id_", "node_id")
    identity = next((one for name in names if isinstance(one := _part(value, name), str)), None)
    return Document(text, metadata=metadata if isinstance(metadata, dict) else {}, id=identity)


def _part(value: Any, name: str) -> Any:
    """A key of a mapping, or an attribute of a node of LlamaIndex."""
    if isinstance(value, Mapping):
        return value.get(name)
    of_llama_index = any(kind.__module__.partition(".")[0] == "llama_index" for kind in type(value).__mro__)
    return getattr(value, name, None) if of_llama_index else None


def _json(message: ToolMessage) -> Any:
    """The value of text that is JSON, or a list of the values of several blocks of text that are; None for others."""
    values = [*_values(message.content)]
    return values[0] if len(values) == 1 and _document(values[0]) is None else values


def _values(content: str | Sequence[Any]) -> Iterator[Any]:
    for block in [content] if isinstance(content, str) else content:
        text = block.get("text") if isinstance(block, Mapping) else block
        try:
            yield json.loads(text) if isinstance(text, str) and _KEY.search(text) else None
        except (ValueError, RecursionError):
            yield None


def _looks_like_text(value: Any) -> bool:
    """Whether an item of an artifact is a text with something about it, as found by a search."""
    values = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else ()
    return any(isinstance(one, str) and one.strip() for one in values)
