"""Gather search results from the messages of an agent, and lay them out for the model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage, BaseMessage, ToolMessage

from oprag._internal.masking import describe
from oprag._internal.warn import warn
from oprag.agents.layouts import Layout, check_layout
from oprag.agents.search_result_blocks import Form, has_blocks, is_block, text_in
from oprag.agents.working_context import WorkingContext
from oprag.chunk import Chunk, RankedList, as_found
from oprag.errors import OptionError, RetrievalWarning
from oprag.langchain.cited_messages import without_annotations
from oprag.langchain.documents import chunks_of
from oprag.langchain.tool_results import documents_in, is_saved_elsewhere, text_forms, unreadable_form
from oprag.methods.citations import renumbered
from oprag.options import ContextOptions
from oprag.pipeline.context_report import METADATA_KEY
from oprag.pipeline.render import without_markers

__all__ = [
    "STATE_KEY",
    "SearchArtifact",
    "SearchResult",
    "as_tool_names",
    "gather",
    "gather_search_results",
    "lay_out_messages",
    "working_context_of",
]

STATE_KEY = "working_context"
"""The key of the agent's state under which the working context is stored, as plain values."""
_SHORTEST_PART = 12  # characters


def working_context_of(state: Any, options: ContextOptions | None = None, **changes: Any) -> WorkingContext:
    """Read the working context of an agent, for example to resolve the citations in its answer.

    Args:
        state: The state of the agent, as a mapping or an object: the result of `invoke`, or
            `agent.get_state(config).values`.
        options: The same options as those of the middleware.
        **changes: Options of `ContextOptions` to change.

    Returns:
        The working context; empty if nothing was searched.

    Raises:
        DataError: The value under "working_context" is not a working context.
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
    """Add new search results in the messages to the working context of the state.

    Use it in a custom LangGraph graph, as a node between `ToolNode` and the model. The state needs the keys `messages`
    (with the reducer `add_messages`, as in `MessagesState`) and `working_context`. In an agent from `create_agent`,
    `OrderPreservingMiddleware` calls it. To set options, use
    `functools.partial(gather_search_results, token_budget=16_000)`.

    A search result is a tool message with a list of documents, whose text contains the texts of these documents: in its
    artifact (LangChain's documents, LlamaIndex's nodes, or the `structured_content` of an MCP tool), or as JSON in its
    text. Its text is replaced with the texts of the documents, with their sources and pages; any other text of the tool
    is dropped. If its content has `search_result` blocks, it is replaced with such blocks, one for each passage. Other
    messages are not changed, such as results that a middleware redacted. The documents of a long
    result that Deep Agents moved to a file are gathered, too, but its message stays as it is. A result that looks like
    one of a search, but cannot be read, causes a warning.

    Args:
        state: The state of the graph, with its messages.
        options: The options of the working context.
        search_tools: Names of the tools whose results are gathered, even if their text was changed, such as redacted;
            by default all tools whose text contains their documents.
        **changes: Options of `ContextOptions` to change, such as `token_budget=16_000`.

    Returns:
        An update of the state: the messages of new search results with their new text, whose documents contain their
        numbers under the metadata key "oprag", and the working context. Empty without new results.

    Raises:
        ChunkError: The text of a document is not a string.
        DataError: The value under "working_context" is not a working context.
        MissingPositionError: A document has no position, and `on_missing_position="error"`.
        OptionError: An option is unknown or invalid.
        TokenizerError: `count_tokens` returned no usable count.
    """
    working = working_context_of(state, options, **changes)
    gathered = gather(state, working, as_tool_names(search_tools))
    if not gathered.changed:
        return {}
    return {"messages": [result.message for result in gathered.results], STATE_KEY: working.to_dict()}


class SearchResult(NamedTuple):
    """A search result that was gathered."""

    message: ToolMessage  # with numbers in its documents
    numbers: tuple[int, ...]  # of its chunks, in order
    known: int  # the number of chunks that were gathered before it
    note: str


class Gathered(NamedTuple):
    """What was added to a working context, and whether anything was."""

    results: list[SearchResult]
    answers: list[ToolMessage]  # of subagents, with the numbers of the working context
    joined: set[int]  # the numbers of chunks that subagents gathered
    changed: bool


def gather(
    state: Any,
    working: WorkingContext,
    tools: frozenset[str] | None,
    subagents: Mapping[str, Any] | None = None,
    *,
    shown: bool = True,
) -> Gathered:
    """Add new search results, and the saved contexts of `subagents` by tool call, in the order of the messages."""
    known, tokens = set(working.searches), working.tokens
    messages = [message for message in _value_in(state, "messages") if isinstance(message, ToolMessage)]
    # Some models restart their ids in every turn.
    latest = {message.tool_call_id: message for message in messages}
    new: dict[str, tuple[ToolMessage, list[Document] | WorkingContext]] = {}
    for index, message in enumerate(messages):
        name = _name(message)
        if latest[message.tool_call_id] is message and (saved := (subagents or {}).get(message.tool_call_id)):
            new[name] = message, WorkingContext.from_dict(saved, working.options)
        elif name not in known and name not in new and (documents := _found_by(message, messages[:index], tools)):
            new[name] = message, documents
    working.forget(known.difference(map(_name, messages)))
    gathered = Gathered([], [], set(), bool(new) or working.tokens != tokens)
    for message, found in new.values():
        if isinstance(found, list):
            gathered.results.append(_gathered(message, found, working, shown=shown))
        else:
            before = len(working)
            gathered.answers.append(_renumbered(message, working.join(found)))
            gathered.joined.update(range(before + 1, len(working) + 1))
    return gathered


def lay_out_messages(
    messages: Sequence[AnyMessage],
    working: WorkingContext,
    *,
    layout: Layout = "delta",
    compact_above: int = 0,
) -> list[AnyMessage]:
    """Lay out the search results in the messages of a prompt.

    Call it last, after messages were trimmed, cleared or redacted. A pointer to the text of a message that was removed,
    or cleared by `ContextEditingMiddleware`, is replaced with the text. A message that was changed in any other way
    stays as it is, and its chunks are not shown again. The annotations of `cited_message` are removed, since providers
    accept only their own.

    Args:
        messages: The messages of the prompt.
        working: The working context of the agent, as returned by `working_context_of`.
        layout: "delta": each result shows only what was new in it. "compact": the last result contains the whole
            context, in source order, and the others are pointers.
        compact_above: With "compact": results stay as in "delta" until they have more than this number of tokens in
            total.

    Returns:
        The messages; those without annotations that are not search results of `working`, or that were changed, are the
        same objects.

    Raises:
        OptionError: `layout` or `compact_above` is invalid.
        TokenizerError: `count_tokens` returned no usable count.
    """
    check_layout(layout, compact_above)
    known = set(working.searches)
    # Of messages with the same name (copies), only the last one is laid out.
    places = {
        _name(message): place
        for place, message in enumerate(messages)
        if isinstance(message, ToolMessage) and _name(message) in known and not _is_cleared(message)
    }
    laid_out: list[Any] = [without_annotations(message) for message in messages]
    changed = {name for name, place in places.items() if not working.is_result_of(name, laid_out[place].content)}
    if not places or (layout == "delta" and [*places] == [*working.searches]):
        return laid_out
    contents = working.layout([*places], layout, compact_above=compact_above, changed=changed)
    for (name, place), content in zip(places.items(), contents, strict=True):
        if name not in changed and content != laid_out[place].content:
            laid_out[place] = laid_out[place].model_copy(update={"content": content})
    return laid_out


def _value_in(state: Any, key: str) -> Any:
    """A value of a state, which is a mapping, or an object such as a Pydantic model."""
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
            f'search_tools must be a list of tool names, such as ["search"], got {describe(search_tools)}', search_tools
        )
    return frozenset(names)


def _name(message: BaseMessage) -> str:
    """The name of a search; the tool call id is only a fallback, since some models restart their ids in every turn."""
    return message.id or str(getattr(message, "tool_call_id", ""))


def _found_by(message: ToolMessage, before: Sequence[ToolMessage], tools: frozenset[str] | None) -> list[Document]:
    """The documents of a search result; empty for other messages, with a warning where that may be unexpected."""
    if message.status == "error" or (tools is not None and message.name not in tools):
        return []
    documents, form = documents_in(message), None
    if not documents and tools is None and (form := unreadable_form(message)) is None:
        return []
    if not documents:
        form = form or unreadable_form(message) or "a result without documents"
        problem = (
            f"they are {form}; use oprag.langchain.create_search_tool, or create the tool with "
            'response_format="content_and_artifact" and return the list of documents as its artifact'
        )
    elif not isinstance(message.content, str) and any(_is_not_text(block) for block in message.content):
        problem = "the result contains something other than text, such as an image"
    elif tools is not None or is_saved_elsewhere(message) or _shows(message, before, documents):
        return documents
    else:
        problem = (
            "the text of the result does not contain the documents; to show the documents instead of the text, add the "
            "tool to search_tools"
        )
    warn(
        f"the results of the tool {describe(message.name)} are not gathered: {problem}",
        RetrievalWarning,
        cause=f"the tool {describe(message.name)}: {problem}",
    )
    return []


def _shows(message: ToolMessage, before: Sequence[ToolMessage], documents: Sequence[Document]) -> bool:
    """Whether the message, together with the messages that it points to, contains the texts of the documents."""
    content = text_in(message.content)
    texts = [document.page_content.strip() for document in documents]
    if all(any(form in content for form in text_forms(text)) for text in texts):
        return True
    # The message was gathered before, but the state is missing: it contains pointers, and parts of some texts.
    shown = "".join("".join([content, *(text_in(earlier.content) for earlier in before)]).split())
    return all(_has_parts(shown, "".join(without_markers(text).split())) for text in texts)


def _has_parts(shown: str, text: str) -> bool:
    """Whether `shown` contains the whole text, possibly in several parts, none of which is too short to be evidence."""
    start = 0
    while start < len(text):
        # Binary search for the longest part; every prefix of a part that is shown is also shown.
        low, high = 0, len(text) - start
        while low < high:
            length = (low + high + 1) // 2
            low, high = (length, high) if text[start : start + length] in shown else (low, length - 1)
        if low < min(_SHORTEST_PART, len(text)):
            return False
        start += low
    return True


def _is_not_text(block: Any) -> bool:
    is_text = isinstance(block, str) or (isinstance(block, Mapping) and block.get("type") == "text")
    return not is_text and not is_block(block)


def _is_cleared(message: ToolMessage) -> bool:
    """Whether another middleware replaced the text, by a placeholder or by where it was saved."""
    editing = message.response_metadata.get("context_editing")
    return is_saved_elsewhere(message) or (isinstance(editing, Mapping) and bool(editing.get("cleared")))


def _gathered(message: ToolMessage, documents: list[Document], working: WorkingContext, *, shown: bool) -> SearchResult:
    """Add a search result, and give its message the new text and numbers in its documents."""
    artifact = message.artifact
    chunks = as_found(chunks_of(documents), artifact)
    note = artifact.note if isinstance(artifact, SearchArtifact) and artifact.chunks is not None else ""
    known = len(working)
    # The tool decides the form, as the model must be one that knows it.
    form: Form = "search_result" if has_blocks(message.content) else "text"
    delta = working.add(chunks, search=_name(message), note=note, content=form)
    numbered = [
        _annotated(document, {"rank": chunk.rank, "number": delta.ranks.get(chunk.rank)})
        for document, chunk in zip(documents, chunks, strict=True)
    ]
    update: dict[str, Any] = {"artifact": numbered}
    if shown and not is_saved_elsewhere(message):
        update["content"] = delta.content
    else:
        # The model does not see the text; it would be long.
        working.forget([_name(message)])
    return SearchResult(message.model_copy(update=update), delta.numbers, known, note)


def _renumbered(message: ToolMessage, numbers: Mapping[int, int]) -> ToolMessage:
    """The answer of a subagent with these numbers instead of its own."""
    if not isinstance(message.content, str) or _is_json(message.content):
        return message
    return message.model_copy(update={"content": renumbered(message.content, numbers)})


def _is_json(text: str) -> bool:
    """Whether a text is a structured response, in which lists of numbers are data."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _annotated(document: Document, annotation: dict[str, Any]) -> Document:
    """A copy with this metadata under "oprag", which replaces whatever the document itself has there."""
    return document.model_copy(update={"metadata": {**document.metadata, METADATA_KEY: annotation}})


class SearchArtifact(RankedList[Document]):
    """The documents that a tool of oprag found.

    A gathering step reads ranks, sources, places and the note from this object, not from the metadata, which the author
    of a document can write. Copies, pickles and checkpoints of it are plain lists, whose ranks are the indices.
    """

    def __init__(self, chunks: Sequence[Chunk], note: str = "") -> None:
        super().__init__((_annotated(chunk.origin, {"rank": chunk.rank}) for chunk in chunks), chunks)
        self.note = note
