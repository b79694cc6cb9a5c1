"""The search results among the messages of an agent: gathering them, and what the model reads of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage

from oprag.chunk import Chunk, Span, StorePlace, changed
from oprag.context_report import METADATA_KEY
from oprag.errors import OptionError, RetrievalWarning
from oprag.langchain.documents import chunks_of
from oprag.masking import describe
from oprag.methods.answer import without_markers
from oprag.options import ContextOptions
from oprag.warn import warn
from oprag.working_context import Delta, Layout, WorkingContext, check_layout

__all__ = [
    "STATE_KEY",
    "as_tool_names",
    "gather_search_results",
    "lay_out_messages",
    "search_documents",
    "working_context_of",
]

STATE_KEY = "working_context"
"""The key of an agent's state that has the working context, as plain values."""
_NOTE = "note"
_SHORTEST_PART = 12  # characters


def working_context_of(state: Any, options: ContextOptions | None = None, **changes: Any) -> WorkingContext:
    """The working context of an agent, such as for the citations in its answer.

    Args:
        state: The state of the agent, as a mapping or an object: what `invoke` returned, or
            `agent.get_state(config).values`.
        options: The options, as the middleware has them.
        **changes: Options of `ContextOptions` to change.

    Returns:
        The working context; an empty one where nothing was searched for.

    Raises:
        DataError: The state has something else under "working_context".
        OptionError: An option is unknown or invalid, or `state` has no messages.
    """
    data = _value_in(state, STATE_KEY)
    return WorkingContext(options, **changes) if data is None else WorkingContext.from_dict(data, options, **changes)


# LangGraph's types reject a node whose state is a Mapping.
def gather_search_results(
    state: Any,
    options: ContextOptions | None = None,
    *,
    search_tools: Iterable[str] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Add the new search results among the messages to the working context of the state.

    For a LangGraph graph of your own: a node between `ToolNode` and the model. Its state needs the keys `messages`
    (with the reducer `add_messages`, as `MessagesState` has it) and `working_context`. In an agent of `create_agent`,
    `OrderPreservingMiddleware` calls it. With options: `functools.partial(gather_search_results, token_budget=16_000)`.

    Search results are tool messages whose artifact is a list of documents, and whose text has the texts of these. Their
    text is replaced: the new one has the texts of the documents with their sources and pages, and nothing else that the
    tool wrote. Other messages are left alone, such as one that a middleware redacted.

    Args:
        state: The state of the graph, with its messages.
        options: The options of the working context.
        search_tools: The names of the tools whose results are gathered, whatever their text is, redacted or not; by
            default all tools.
        **changes: Options of `ContextOptions` to change, such as `token_budget=16_000`.

    Returns:
        An update of the state: the messages of new search results with their new text, whose documents have their
        numbers under the metadata key "oprag", and the working context. Empty if nothing is new.

    Raises:
        ChunkError: The text of a document is not a string.
        DataError: The state has something else under "working_context".
        MissingPositionError: A document has no position, and `on_missing_position="error"`.
        OptionError: An option is unknown or invalid.
        TokenizerError: `count_tokens` returned no usable count.
    """
    tools = as_tool_names(search_tools)
    working = working_context_of(state, options, **changes)
    known = set(working.searches)
    results = [message for message in _value_in(state, "messages") if isinstance(message, ToolMessage)]
    found: dict[str, tuple[ToolMessage, list[Document]]] = {}
    for place, message in enumerate(results):
        name = _name(message)
        if name not in known and name not in found and (documents := _found_by(message, results[:place], tools)):
            found[name] = message, documents
    seen = working.tokens
    working.forget(known.difference(map(_name, results)))
    if not found and working.tokens == seen:
        return {}
    updated = [_gathered(message, documents, working) for message, documents in found.values()]
    return {"messages": updated, STATE_KEY: working.to_dict()}


def lay_out_messages(
    messages: Sequence[AnyMessage],
    working: WorkingContext,
    *,
    layout: Layout = "delta",
    compact_above: int = 0,
) -> list[AnyMessage]:
    """The messages of a prompt with the search results as the model should read them.

    Call it last, after messages were trimmed, cleared or redacted. A pointer to text of a message that was removed, or
    cleared by `ContextEditingMiddleware`, becomes the text again. A message with any other change is left alone, and
    what it found is not shown again.

    Args:
        messages: The messages of the prompt.
        working: The working context of the agent, as `working_context_of` returns it.
        layout: "delta": each result shows what was new in it. "compact": the last one is the whole context, in the
            order of the sources, and the others are pointers.
        compact_above: With "compact": the number of tokens of all results up to which they are left as "delta".

    Returns:
        The messages. Those that are not search results of `working`, or that were changed since, are the same objects.

    Raises:
        OptionError: `layout` or `compact_above` is invalid.
        TokenizerError: `count_tokens` returned no usable count.
    """
    check_layout(layout, compact_above)
    known = set(working.searches)
    # A name occurs once: a message that was copied is one that was changed.
    places = {
        _name(message): place
        for place, message in enumerate(messages)
        if isinstance(message, ToolMessage) and _name(message) in known and not _is_cleared(message)
    }
    laid_out: list[Any] = list(messages)
    changed = {name for name, place in places.items() if not _is_unchanged(laid_out[place], working)}
    if not places or (layout == "delta" and [*places] == [*working.searches]):
        return laid_out
    texts = working.layout([*places], layout, compact_above=compact_above, changed=changed)
    for (name, place), text in zip(places.items(), texts, strict=True):
        if name not in changed and text != laid_out[place].content:
            laid_out[place] = laid_out[place].model_copy(update={"content": text})
    return laid_out


def _value_in(state: Any, key: str) -> Any:
    """A value of a state: a mapping, or an object such as a Pydantic model."""
    if isinstance(state, Mapping):
        return state.get(key)
    if not hasattr(state, "messages"):
        raise OptionError(f"expected the state of an agent, got {type(state).__name__}", state)
    return getattr(state, key, None)


def as_tool_names(search_tools: Iterable[str] | None) -> frozenset[str] | None:
    """Validate `search_tools`; a single string is rejected."""
    if search_tools is None:
        return None
    names = () if isinstance(search_tools, str) or not isinstance(search_tools, Iterable) else tuple(search_tools)
    if not names or not all(isinstance(name, str) for name in names):
        raise OptionError(
            f'search_tools must be the names of tools, such as ["search"], got {describe(search_tools)}', search_tools
        )
    return frozenset(names)


def _name(message: BaseMessage) -> str:
    """What names a search; some models number their tool calls anew in every turn."""
    return message.id or str(getattr(message, "tool_call_id", ""))


def _documents(message: ToolMessage) -> list[Document]:
    """The documents that a tool returned; none for what is not a search result."""
    artifact = message.artifact
    if message.status == "error" or not isinstance(artifact, list | tuple):
        return []
    documents = [document for value in artifact if (document := _document(value)) is not None]
    return documents if len(documents) == len(artifact) else []


def _found_by(message: ToolMessage, before: Sequence[ToolMessage], tools: frozenset[str] | None) -> list[Document]:
    """The documents of a search result; none, with a warning where a user would not expect that, for other messages."""
    documents = _documents(message)
    expected = documents if tools is None else message.name in tools
    if message.status == "error" or not expected:
        return []
    if not documents:
        problem = "they are not a list of documents, as the artifact of the tool"
    elif not isinstance(message.content, str) and any(_is_not_text(block) for block in message.content):
        problem = "its result has something else than text, such as an image"
    elif tools is not None or _shows(message, before, documents):
        return documents
    else:
        problem = (
            "the text of its result is another one; to show the documents in its place, name the tool in search_tools"
        )
    warn(
        f"the results of the tool {message.name!r} are not gathered: {problem}",
        RetrievalWarning,
        cause=f"the tool {message.name!r}: {problem}",
    )
    return []


def _shows(message: ToolMessage, before: Sequence[ToolMessage], documents: Sequence[Document]) -> bool:
    """Whether all text of the documents is in the message, or in the messages that it points to."""
    text = str(message.text)
    texts = [one.page_content.strip() for one in documents]
    if all(one in text for one in texts):
        return True
    if not all("number" in _told(one) for one in documents):
        return False
    # It was gathered before, and is in a history without its state: pointers and parts take the place of some text.
    shown = "\n".join([text, *(str(one.text) for one in before)])
    return all(_has_parts(shown, without_markers(one)) for one in texts)


def _has_parts(shown: str, text: str) -> bool:
    """Whether a text is in another one, cut into parts that are not too short to tell anything."""
    start = 0
    while start < len(text):
        if text[start].isspace():
            start += 1
            continue
        # The longest part; each beginning of a part is in the text as well.
        least, most = 0, len(text) - start
        while least < most:
            length = (least + most + 1) // 2
            least, most = (length, most) if text[start : start + length] in shown else (least, length - 1)
        if least < min(_SHORTEST_PART, len(text)):
            return False
        start += least
    return True


def _is_not_text(block: Any) -> bool:
    return not isinstance(block, str) and (not isinstance(block, Mapping) or block.get("type") != "text")


def _is_unchanged(message: ToolMessage, working: WorkingContext) -> bool:
    return isinstance(message.content, str) and working.is_text_of(_name(message), message.content)


def _is_cleared(message: ToolMessage) -> bool:
    """Whether `ContextEditingMiddleware` put a placeholder in place of the text."""
    editing = message.response_metadata.get("context_editing")
    return isinstance(editing, Mapping) and bool(editing.get("cleared"))


def _document(value: Any) -> Document | None:
    """A document, also as the plain values that a server makes of it."""
    if isinstance(value, Document):
        return value
    if not isinstance(value, Mapping) or not isinstance(value.get("page_content"), str):
        return None
    metadata, identity = value.get("metadata"), value.get("id")
    return Document(
        value["page_content"],
        metadata=metadata if isinstance(metadata, dict) else {},
        id=identity if isinstance(identity, str) else None,
    )


def _gathered(message: ToolMessage, documents: list[Document], working: WorkingContext) -> ToolMessage:
    """The message of a new search result with the text of what is new, and with documents that have their numbers."""
    chunks = _chunks(documents)
    note = _told(documents[0]).get(_NOTE)
    delta = working.add(chunks, search=_name(message), note=note if isinstance(note, str) else "")
    numbered = [_numbered(document, chunk, delta) for document, chunk in zip(documents, chunks, strict=True)]
    return message.model_copy(update={"content": delta.text, "artifact": numbered})


def _numbered(document: Document, chunk: Chunk, delta: Delta) -> Document:
    told = {**_told(document), "rank": chunk.rank, "number": delta.ranks.get(chunk.rank)}
    return document.model_copy(update={"metadata": {**document.metadata, METADATA_KEY: told}})


def _chunks(documents: Sequence[Document]) -> list[Chunk]:
    """Documents as chunks; those of our retriever say their ranks, since they are in the order of their source."""
    chunks = chunks_of(documents)
    told = [_told(document) for document in documents]
    ranks = [one.get("rank") for one in told]
    if all(map(_is_whole, ranks)) and len(set(ranks)) == len(ranks):
        return [_as_told(chunk, one) for chunk, one in zip(chunks, told, strict=True)]
    return chunks


def _told(document: Document) -> dict[str, Any]:
    """What a document says under our metadata key; anybody can have written it."""
    told = document.metadata.get(METADATA_KEY)
    return told if isinstance(told, dict) else {}


def _as_told(chunk: Chunk, told: Mapping[str, Any]) -> Chunk:
    """A chunk with the rank, source and place that `search_documents` wrote."""
    source, located, place = told.get("source"), told.get("located"), told.get("store_place")
    return changed(
        chunk,
        rank=told["rank"],
        source=source if isinstance(source, str) else None,
        located=Span(*located) if _fits(located, _SPAN) and located[0] <= located[1] else None,
        store_place=StorePlace(*place) if _fits(place, _STORE_PLACE) else None,
    )


_SPAN = ((int,), (int,), (int, str, type(None)))
_STORE_PLACE = ((int,), (int,), (str,), (int,))
# Larger numbers are not the same in every JSON reader.
_LARGEST = 2**53


def _fits(value: Any, kinds: Sequence[tuple[type, ...]]) -> TypeGuard[Sequence[Any]]:
    """Whether it is a list of values of these types."""
    return (
        isinstance(value, list | tuple)
        and len(value) == len(kinds)
        and all(
            type(part) in kind and (type(part) is not int or _is_whole(part))
            for part, kind in zip(value, kinds, strict=True)
        )
    )


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value <= _LARGEST


def search_documents(chunks: Sequence[Chunk], note: str = "") -> list[Document]:
    """The documents of chunks in order, with their ranks and places under the metadata key "oprag".

    A note for the model is there beside the first one.
    """
    documents: list[Document] = []
    for chunk in chunks:
        told: dict[str, Any] = {"rank": chunk.rank, "source": chunk.source}
        if chunk.located is not None:
            told["located"] = list(chunk.located)
        if chunk.store_place is not None:
            told["store_place"] = list(chunk.store_place)
        if note and not documents:
            told[_NOTE] = note
        documents.append(chunk.origin.model_copy(update={"metadata": {**chunk.metadata, METADATA_KEY: told}}))
    return documents
