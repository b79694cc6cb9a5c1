"""LangChain's messages, prompt templates and models, in the words of the methods and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel

from oprag.errors import PromptError, QueryError
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Message, Prompt, Role, Usage, as_text
from oprag.methods.prompts import ALIASES, HELPERS
from oprag.methods.window import Window

__all__ = [
    "LangChainTemplate",
    "as_template",
    "completion_of",
    "finish_reason_of",
    "history_of",
    "messages_of",
    "prompt_value",
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

_OURS = {name for field, others in ALIASES.items() for name in (field, *others)} | set(HELPERS)
_HISTORY = "chat_history"
# Names in `usage_metadata`, and in what older integrations leave in `response_metadata`.
_INPUT = ("input_tokens", "prompt_tokens")
_OUTPUT = ("output_tokens", "completion_tokens")
# Each provider's name for why a reply ended.
_REASONS = ("finish_reason", "stop_reason", "done_reason", "stopReason")


class _PromptValue(ChatPromptValue):
    """A prompt for any LangChain model: messages, and for models that complete texts our own text of them."""

    text: str

    def to_string(self) -> str:
        return self.text


def prompt_value(prompt: Prompt) -> ChatPromptValue:
    """A prompt as input of a LangChain model."""
    return _PromptValue(messages=messages_of(prompt.messages), text=prompt.text)


def messages_of(messages: Iterable[Message]) -> list[BaseMessage]:
    """Our messages as LangChain's."""
    return [_CLASSES[message.role](content=message.content) for message in messages]


class LangChainTemplate:
    """A LangChain prompt template as a `Template`.

    Args:
        template: Any prompt template; a `MessagesPlaceholder("chat_history")` gets messages, a plain field gets text.
        names: Our names for variables that have others in the template.
    """

    def __init__(self, template: BasePromptTemplate[Any], names: Mapping[str, str] | None = None) -> None:
        self.template = template
        self._names = names or {}
        optional = getattr(template, "optional_variables", [])
        # What was set before wins over our own values, and not over what the caller of the chain gives.
        set_before = [name for name in template.partial_variables if name not in _OURS and name not in optional]
        self._variables = [*template.input_variables, *optional, *set_before]
        self.fields = frozenset(self._names.get(name, name) for name in [*self._variables, *template.partial_variables])

    def messages(self, values: Mapping[str, Any]) -> tuple[Message, ...]:
        """The messages, with these values in the fields."""
        placeholders = self.template.input_types
        given = {
            name: _field(values[ours], as_messages=name in placeholders)
            for name in self._variables
            if (ours := self._names.get(name, name)) in values
            # Where there is no conversation, one that was set before stands.
            and not (ours == _HISTORY and not values[ours] and name in self.template.partial_variables)
        }
        missing = [name for name in self.template.input_variables if name not in given]
        if missing:
            raise PromptError(
                f"the prompt wants {', '.join(f'{{{name}}}' for name in missing)}, which has no value here; there are "
                f"{', '.join(sorted(values))}",
                self.template,
            )
        return tuple(message_of(message) for message in self.template.format_prompt(**given).to_messages())


def as_template(template: Any) -> LangChainTemplate:
    """A LangChain prompt template as a `Template`."""
    if not isinstance(template, BasePromptTemplate):
        raise PromptError(f"a prompt must be a string or a prompt template, got {type(template).__name__}", template)
    return LangChainTemplate(template)


def _field(value: Any, *, as_messages: bool) -> Any:
    if isinstance(value, tuple) and all(isinstance(part, Message) for part in value):
        return messages_of(value) if as_messages else as_text(value)
    return value


def message_of(message: BaseMessage) -> Message:
    """A LangChain message as ours."""
    role = role_of(message)
    if role is None:
        raise PromptError(f"a prompt can hold messages of system, user and assistant, got {message.type}", message)
    content = message.content
    if not isinstance(content, str) and any(
        not isinstance(block, str) and block.get("type") != "text" for block in content
    ):
        raise PromptError("a prompt can hold text only", message)
    return Message(role, str(message.text))


def role_of(message: BaseMessage) -> Role | None:
    """Who speaks in a message, or a chunk of one; None for tools and the like."""
    for role, kind in _CLASSES.items():
        if isinstance(message, kind):
            return role
    return _ROLES.get(str(getattr(message, "role", "")))


def history_of(history: Any) -> tuple[Message, ...]:
    """A conversation, in any of the forms that LangChain's chains take: messages, pairs of texts, roles and texts."""
    if history is None or history == "":
        return ()
    if isinstance(history, str) or not isinstance(history, Iterable):
        raise QueryError(
            f"chat_history must be a list of messages or of pairs of texts, got {describe(history)}", history
        )
    return tuple(message for turn in history for message in _turn(turn))


def _turn(turn: Any) -> tuple[Message, ...]:
    if isinstance(turn, Message):
        return (turn,)
    if isinstance(turn, BaseMessage):
        # Calls of tools and their results were never said.
        role = role_of(turn)
        return (Message(role, str(turn.text)),) if role is not None and turn.text else ()
    if isinstance(turn, Mapping) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str):
        if role := _ROLES.get(turn["role"]):
            return (Message(role, turn["content"]),)
        if turn["role"] in ("tool", "function"):
            return ()
    if isinstance(turn, tuple | list) and len(turn) == 2 and all(isinstance(part, str) for part in turn):
        first, second = turn
        if role := _ROLES.get(first):
            return (Message(role, second),)
        return Message("user", first), Message("assistant", second)
    raise QueryError(f"chat_history must be a list of messages or of pairs of texts, got {describe(turn)} in it", turn)


def completion_of(reply: Any, seconds: float) -> Completion:
    """A model's reply: a message, a text, or the object of a model with structured output."""
    if isinstance(reply, str):
        return Completion(str(reply), seconds=seconds)
    if isinstance(reply, BaseMessage):
        return Completion(
            str(reply.text), usage=usage_of(reply), seconds=seconds, finish_reason=finish_reason_of(reply)
        )
    raw = reply.get("raw") if isinstance(reply, dict) else None
    if not isinstance(raw, BaseMessage):
        return Completion(_as_json(reply), reply, seconds=seconds)
    # What `include_raw=True` of a model with structured output gives; where it could not be parsed, its own words.
    text = _as_json(reply.get("parsed")) or str(raw.text)
    return Completion(text, reply, usage=usage_of(raw), seconds=seconds, finish_reason=finish_reason_of(raw))


def _as_json(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, BaseModel):
        return value.model_dump_json()
    return json.dumps(value, ensure_ascii=False, default=str)


def usage_of(message: BaseMessage) -> Usage | None:
    """The model's own count of tokens, where it gave one."""
    usage = getattr(message, "usage_metadata", None) or {}
    if usage.get("total_cost") == 0:
        # How LangChain marks a reply from its cache. The token counts beside it, if any, are those of the first call.
        return Usage()
    about = message.response_metadata
    place: Any
    for place in (usage, about.get("token_usage"), about.get("usage")):
        if not isinstance(place, Mapping):
            continue
        read = next((place[name] for name in _INPUT if isinstance(place.get(name), int)), None)
        written = next((place[name] for name in _OUTPUT if isinstance(place.get(name), int)), None)
        if read is not None and written is not None:
            details = place.get("input_token_details") or {}
            return Usage(read, written, details.get("cache_read") or 0)
    return None


def finish_reason_of(message: BaseMessage) -> str | None:
    """Why the model stopped, in its own word."""
    about = message.response_metadata
    # OpenAI's Responses API has a reason for replies that are not complete alone.
    incomplete = about.get("incomplete_details") or {}
    reasons = (*(about.get(name) for name in _REASONS), incomplete.get("reason"))
    return next((reason for reason in reasons if isinstance(reason, str) and reason), None)


def window_of(llm: Any, config: RunnableConfig) -> Window | None:
    """The smallest context window that the profiles of the models say; None if none says it.

    A profile has the tokens that a model can read, so none of them is kept for the reply.
    """
    known: list[int] = []
    for model in _models(llm, config):
        profile = getattr(model, "profile", None)
        tokens = profile.get("max_input_tokens") if isinstance(profile, Mapping) else None
        if type(tokens) is int and tokens > 0:
            known.append(tokens)
    return Window(min(known)) if known else None


def _models(runnable: Any, config: RunnableConfig) -> Iterator[Any]:
    """The models in retries, fallbacks, configurations, and the steps that make an object of a reply."""
    # Wrappers pass on the attributes of what they wrap, so the class is asked.
    if "profile" in getattr(type(runnable), "model_fields", ()):
        yield runnable
        return
    # Imported here, since LangChain loads them only for those who use them.
    from langchain_core.runnables import RunnableParallel, RunnableSequence, RunnableWithFallbacks
    from langchain_core.runnables.base import RunnableBindingBase
    from langchain_core.runnables.configurable import DynamicRunnable

    parts: list[Any] = []
    if isinstance(runnable, DynamicRunnable):
        with suppress(Exception):  # an unknown choice is an error of the call
            chosen, config = runnable.prepare(config)
            parts = [chosen]
    elif isinstance(runnable, RunnableBindingBase):
        parts = [runnable.bound]
    elif isinstance(runnable, RunnableWithFallbacks):
        parts = list(runnable.runnables)
    elif isinstance(runnable, RunnableSequence):
        parts = runnable.steps
    elif isinstance(runnable, RunnableParallel):
        parts = list(runnable.steps__.values())
    for part in parts:
        yield from _models(part, config)
