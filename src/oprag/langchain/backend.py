"""What a method needs of LangChain: prompts, messages and replies of its models, and its retrievers and embeddings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, convert_to_messages
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.utils import AddableDict
from pydantic import BaseModel

from oprag._internal.masking import describe
from oprag._internal.sync_async import Step, Steps, run_sync
from oprag.context import Context
from oprag.embedding.vector_cache import VectorCache
from oprag.errors import PromptError, QueryError
from oprag.langchain.embeddings import as_embedder
from oprag.langchain.retriever import OrderPreservingRetriever
from oprag.langchain.wrapped import WITH_STEPS, inside
from oprag.methods.answer import Completion, Usage, reported_reason, reported_usage
from oprag.methods.prompts import ALIASES, HELPERS, Message, Prompt, Role, as_text, missing_fields
from oprag.methods.run import Backend, Collected, completed
from oprag.methods.window import Window
from oprag.options import ContextOptions

__all__ = [
    "LangChainBackend",
    "LangChainTemplate",
    "as_template",
    "complete",
    "history_of",
    "messages_of",
    "usage_of",
    "window_of",
]

_CLASSES: dict[Role, type[BaseMessage]] = {"system": SystemMessage, "user": HumanMessage, "assistant": AIMessage}
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
}

_FIELDS = {name for field, others in ALIASES.items() for name in (field, *others)} | set(HELPERS)
_HISTORY = "chat_history"


class _PromptValue(ChatPromptValue):
    """A prompt for any LangChain model: messages for chat models, and a text for completion models."""

    text: str

    def to_string(self) -> str:
        return self.text


def prompt_value(prompt: Prompt) -> ChatPromptValue:
    """Convert a prompt to the input of a LangChain model."""
    return _PromptValue(messages=messages_of(prompt.messages), text=prompt.text)


def messages_of(messages: Iterable[Message]) -> list[BaseMessage]:
    """Convert messages to LangChain's."""
    return [_CLASSES[message.role](content=message.content) for message in messages]


class LangChainTemplate:
    """A LangChain prompt template as a `Template`; `names` has the methods' names of other variables."""

    def __init__(self, template: BasePromptTemplate[Any], names: Mapping[str, str] | None = None) -> None:
        self.template = template
        self._names = names or {}
        optional = getattr(template, "optional_variables", [])
        # Partial variables override the values of the methods, but not the inputs of the chain.
        partial = [name for name in template.partial_variables if name not in _FIELDS and name not in optional]
        self._variables = [*template.input_variables, *optional, *partial]
        self.fields = frozenset(self._names.get(name, name) for name in [*self._variables, *template.partial_variables])

    def messages(self, values: Mapping[str, Any]) -> tuple[Message, ...]:
        """Format the template with these values."""
        placeholders = self.template.input_types
        given = {
            name: _field(values[key], as_messages=name in placeholders)
            for name in self._variables
            if (key := self._names.get(name, name)) in values
            # An empty conversation does not override one that is set as a partial variable.
            and not (key == _HISTORY and not values[key] and name in self.template.partial_variables)
        }
        missing = [name for name in self.template.input_variables if name not in given]
        if missing:
            raise missing_fields(missing, values, self.template)
        return tuple(message_of(message) for message in self.template.format_prompt(**given).to_messages())


def as_template(template: Any) -> LangChainTemplate:
    """Wrap a LangChain prompt template as a `Template`."""
    if not isinstance(template, BasePromptTemplate):
        raise PromptError(f"a prompt must be a string or a prompt template, got {type(template).__name__}", template)
    return LangChainTemplate(template)


def _field(value: Any, *, as_messages: bool) -> Any:
    if isinstance(value, tuple) and all(isinstance(part, Message) for part in value):
        return messages_of(value) if as_messages else as_text(value)
    return value


def message_of(message: BaseMessage) -> Message:
    """Convert a LangChain message."""
    role = role_of(message)
    if role is None:
        raise PromptError(f"a prompt may only contain system, user and assistant messages, got {message.type}", message)
    content = message.content
    if not isinstance(content, str) and any(
        not isinstance(block, str) and block.get("type") != "text" for block in content
    ):
        raise PromptError("a prompt may only contain text; remove images and other content blocks", message)
    return Message(role, str(message.text))


def role_of(message: BaseMessage) -> Role | None:
    """The role of a message or message chunk; None for tool messages and similar types."""
    for role, kind in _CLASSES.items():
        if isinstance(message, kind):
            return role
    return _ROLES.get(str(getattr(message, "role", "")))


def history_of(history: Any) -> tuple[Message, ...]:
    """Convert a conversation in any form that LangChain's chains accept: messages, pairs of texts, or role and text."""
    if history is None or history == "":
        return ()
    if isinstance(history, str) or not isinstance(history, Iterable):
        raise QueryError(
            f"chat_history must be a list of messages or of pairs of texts, got {describe(history)}", history
        )
    return tuple(message for turn in history for message in _turn(turn))


def _turn(turn: Any) -> tuple[Message, ...]:
    if isinstance(turn, tuple | list) and len(turn) == 2 and all(isinstance(part, str) for part in turn):
        first, second = turn
        if first not in _ROLES:
            return Message("user", first), Message("assistant", second)
    try:
        (message,) = convert_to_messages([] if isinstance(turn, str) else [turn])
    except (KeyError, NotImplementedError, TypeError, ValueError) as error:
        raise QueryError(
            f"chat_history must be a list of messages or of pairs of texts, got an item {describe(turn)}", turn
        ) from error
    # Tool calls and their results are not part of the conversation.
    role = role_of(message)
    return (Message(role, str(message.text)),) if role is not None and message.text else ()


def completion_of(reply: Any) -> Completion:
    """Convert a model's reply: a message, a string, or an object for structured output."""
    if isinstance(reply, str):
        return Completion(str(reply))
    if isinstance(reply, BaseMessage):
        return Completion(str(reply.text), usage=usage_of(reply), finish_reason=_reason_of(reply))
    raw = reply.get("raw") if isinstance(reply, dict) else None
    if not isinstance(raw, BaseMessage):
        return Completion(_as_json(reply), reply)
    # Structured output with `include_raw=True`; if parsing failed, the text is the raw reply.
    text = _as_json(reply.get("parsed")) or str(raw.text)
    return Completion(text, reply, usage=usage_of(raw), finish_reason=_reason_of(raw))


def _as_json(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    return json.dumps(value, ensure_ascii=False, default=str)


def usage_of(message: BaseMessage) -> Usage | None:
    """The token usage that the model reported, if any."""
    usage = getattr(message, "usage_metadata", None) or {}
    if usage.get("total_cost") == 0:
        # LangChain marks cached replies this way. Their token counts, if any, are those of the original call.
        return Usage()
    metadata = message.response_metadata
    return reported_usage(usage, metadata.get("token_usage"), metadata.get("usage"))


def _reason_of(message: BaseMessage) -> str | None:
    metadata = message.response_metadata
    # OpenAI's Responses API reports a reason only for incomplete replies.
    return reported_reason(metadata, metadata.get("incomplete_details"))


def window_of(llm: Any, config: RunnableConfig) -> Window | None:
    """The smallest window in the profiles of the models, which leaves out the reply; None if no profile has one."""
    windows: list[int] = []
    for model in _models(llm, config):
        profile = getattr(model, "profile", None)
        tokens = profile.get("max_input_tokens") if isinstance(profile, Mapping) else None
        if type(tokens) is int and tokens > 0:
            windows.append(tokens)
    return Window(min(windows)) if windows else None


def _models(runnable: Any, config: RunnableConfig) -> Iterator[Any]:
    """The models inside retries, fallbacks, configurable runnables and chains for structured output."""
    # Look at the class, because wrappers forward attribute access to the wrapped object.
    if "profile" in getattr(type(runnable), "model_fields", ()):
        yield runnable
        return
    # Imported here, since LangChain imports it lazily.
    from langchain_core.runnables.configurable import DynamicRunnable

    if isinstance(runnable, DynamicRunnable):
        with suppress(Exception):  # the call itself reports an unknown choice
            yield from _models(*runnable.prepare(config))
        return
    for part in inside(runnable, WITH_STEPS):
        yield from _models(part, config)


@dataclass
class LangChainBackend(Backend):
    """LangChain's components."""

    llm: Runnable[Any, Any]
    retriever: OrderPreservingRetriever
    context_options: ContextOptions
    embeddings: Any  # LangChain's `Embeddings` or an `oprag.Embedder`, if available
    config: RunnableConfig  # of the chain's run; all calls are child runs of it
    filter: Any = None  # of every search for this question

    def find(self, question: str) -> Steps[Context]:
        """Search for a question, and build its context."""
        callbacks = self.config.get("callbacks")
        if isinstance(callbacks, BaseCallbackManager) and not callbacks.handlers:
            # Nobody would see a run of the retriever.
            return (yield from self.retriever._found(question, self.context_options, self.config, self.filter))  # noqa: SLF001
        given: Any = {"filter": self.filter, "context_options": self.context_options, "config": self.config}
        context: Context = yield Step(
            lambda: self.retriever.get_context(question, **given),
            lambda: self.retriever.aget_context(question, **given),
        )
        return context

    def call(self, prompt: Prompt) -> Steps[Completion]:
        """Call the model."""
        return _called(self.llm, prompt, self.config)

    def opened(self, prompt: Prompt) -> tuple[Step, Collected]:
        """Open a stream of the model's reply, and what collects it."""
        given, config = prompt_value(prompt), self.config | {"run_name": prompt.step}

        async def opened() -> Any:
            return self.llm.astream(given, config)

        return Step(lambda: self.llm.stream(given, config), opened), _CollectedChunks()

    def embedding(self) -> tuple[Any, VectorCache]:
        """The embedder, and the cache of its vectors."""
        return as_embedder(self.embeddings), self.retriever.vector_cache


def complete(llm: Runnable[Any, Any], prompt: Prompt, config: RunnableConfig | None = None) -> Completion:
    """Call a model, and return its reply or its error."""
    return run_sync(completed(_called(llm, prompt, config or {})))


def _called(llm: Runnable[Any, Any], prompt: Prompt, config: RunnableConfig) -> Steps[Completion]:
    given, config = prompt_value(prompt), config | {"run_name": prompt.step}
    return completion_of((yield Step(lambda: llm.invoke(given, config), lambda: llm.ainvoke(given, config))))


class _CollectedChunks(Collected):
    """Messages, texts, or parts of structured output."""

    def __init__(self) -> None:
        super().__init__()
        self._object: Any = None
        self._items: list[str] | None = []

    def add(self, chunk: Any) -> str:
        """Add a chunk, and return its text."""
        if isinstance(chunk, BaseMessage):
            # `usage_metadata` is streamed as increments. Adding messages would sum them too, but in quadratic time.
            usage = usage_of(chunk)
            if usage is not None:
                incremental = bool(getattr(chunk, "usage_metadata", None))
                self.usage = self.usage.plus(usage) if self.usage is not None and incremental else usage
            self.finish_reason = _reason_of(chunk) or self.finish_reason
            text = str(chunk.text)
        elif isinstance(chunk, str):
            text = str(chunk)
        else:
            # Structured output is streamed as growing versions of one object, or as increments: `AddableDict`, or the
            # items of a list of strings.
            self._items = [*self._items, *chunk] if self._items is not None and _is_item(chunk) else None
            incremental = isinstance(chunk, AddableDict) and isinstance(self._object, AddableDict)
            self._object = self._object + chunk if incremental else chunk
            return ""
        self.texts.append(text)
        return text

    def completion(self) -> Completion:
        """The whole reply."""
        return super().completion() if self._object is None else completion_of(self._items or self._object)


def _is_item(chunk: Any) -> bool:
    return isinstance(chunk, list) and len(chunk) == 1 and isinstance(chunk[0], str) and bool(chunk[0])
