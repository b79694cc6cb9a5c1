"""Framework-independent model calls: messages, prompts, completions and token usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from oprag.chunk import quoted

__all__ = ["Call", "Completion", "Message", "Prompt", "Role", "Usage", "as_text", "part", "reported_usage"]

Role = Literal["system", "user", "assistant"]

_ROLE_NAMES = {"system": "System", "user": "Human", "assistant": "Assistant"}
# Names of token counts, by provider and framework.
_INPUT = ("input_tokens", "prompt_tokens", "prompt_token_count", "prompt_eval_count")
_OUTPUT = ("output_tokens", "completion_tokens", "candidates_token_count", "eval_count")
_DETAILS = ("input_token_details", "prompt_tokens_details", "input_tokens_details")
_CACHED = ("cache_read", "cached_tokens")


class Message(NamedTuple):
    """A message of a prompt or a conversation.

    Attributes:
        role: "system", "user" or "assistant".
        content: The text.
    """

    role: Role
    content: str


@dataclass(frozen=True)
class Prompt:
    """The input of one model call.

    Attributes:
        messages: The messages, for a chat model.
        step: The step of the method, such as "map" or "reduce"; also the name of the call in traces.
    """

    messages: tuple[Message, ...]
    step: str

    def __repr__(self) -> str:
        return f"Prompt({self.step!r}, {len(self.messages)} messages, {self.length:,} characters)"

    @property
    def text(self) -> str:
        """The messages as one text, for a completion model; with roles only if there are assistant messages."""
        if any(message.role == "assistant" for message in self.messages):
            return as_text(self.messages)
        return "\n\n".join([message.content for message in self.messages])

    @cached_property
    def length(self) -> int:
        """Number of characters of all messages."""
        return sum([len(message.content) for message in self.messages])


def as_text(messages: tuple[Message, ...]) -> str:
    """A conversation as text: each message on its own line, with its role."""
    return "\n".join(f"{_ROLE_NAMES[message.role]}: {message.content}" for message in messages)


class Usage(NamedTuple):
    """Token usage of one or more calls.

    Attributes:
        input_tokens: Tokens of the prompts.
        output_tokens: Tokens of the replies.
        cached_tokens: The part of `input_tokens` that was read from the provider's prompt cache.
        estimated: Whether any tokens were counted by oprag, because the model did not report them.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False

    def plus(self, other: Usage) -> Usage:
        """Add another usage.

        Args:
            other: The other usage.
        """
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.estimated or other.estimated,
        )


def reported_usage(*holders: Any) -> Usage | None:
    """The token usage that a model reported, in the first of these parts of its reply that has it; None without.

    Args:
        *holders: Mappings or objects, with the names of any provider or framework.
    """
    for counts in holders:
        input_tokens, output_tokens = _count_in(counts, _INPUT), _count_in(counts, _OUTPUT)
        if input_tokens is not None and output_tokens is not None:
            details = next((found for name in _DETAILS if (found := part(counts, name))), None)
            return Usage(input_tokens, output_tokens, _count_in(details, _CACHED) or 0)
    return None


def part(holder: Any, name: str) -> Any:
    """An item of a mapping or an attribute of an object; None if missing."""
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _count_in(holder: Any, names: tuple[str, ...]) -> int | None:
    return next((value for name in names if isinstance(value := part(holder, name), int)), None)


@dataclass(frozen=True)
class Completion:
    """A model's reply to one prompt.

    Attributes:
        text: The reply; JSON for models that return objects; empty if the call failed.
        parsed: The object, for models that return objects (structured output).
        error: The exception of a failed call, or None.
        usage: Token usage as reported by the model, or None.
        seconds: Duration of the call in seconds.
        finish_reason: The provider's finish reason, such as "stop" or "length".
        streamed: Whether part of it was already streamed to the user.
    """

    text: str = ""
    parsed: Any = field(default=None, compare=False)
    error: Exception | None = None
    usage: Usage | None = None
    seconds: float = field(default=0.0, compare=False)
    finish_reason: str | None = None
    streamed: bool = False


@dataclass(frozen=True)
class Call:
    """The record of a model call in an answer.

    Attributes:
        prompt: The prompt.
        completion: The reply.
        usage: Token usage as reported by the model, else an estimate (`estimated`).
    """

    prompt: Prompt
    completion: Completion
    usage: Usage

    @property
    def step(self) -> str:
        """The step of the method that made the call."""
        return self.prompt.step

    def __repr__(self) -> str:
        tokens = f"{self.usage.input_tokens:,} tokens in, {self.usage.output_tokens:,} out"
        failed = "" if self.error is None else f", {type(self.error).__name__}"
        return f"Call({self.step!r}, {tokens}, {self.seconds:.2f} s, {quoted(self.reply)}{failed})"

    @property
    def reply(self) -> str:
        """The text of the reply."""
        return self.completion.text

    @property
    def seconds(self) -> float:
        """Duration of the call in seconds."""
        return self.completion.seconds

    @property
    def error(self) -> Exception | None:
        """The exception of a failed call, or None."""
        return self.completion.error
