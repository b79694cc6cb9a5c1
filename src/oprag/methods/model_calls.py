"""What is sent to a model, in no framework's words."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from oprag.chunk import quoted

__all__ = ["Call", "Completion", "Message", "Prompt", "Role", "Usage", "as_text"]

Role = Literal["system", "user", "assistant"]

_SPEAKERS = {"system": "System", "user": "Human", "assistant": "Assistant"}


class Message(NamedTuple):
    """One message of a prompt or of a conversation.

    Attributes:
        role: Who speaks: "system", "user" or "assistant".
        content: What is said.
    """

    role: Role
    content: str


@dataclass(frozen=True)
class Prompt:
    """One call of a model: what it reads, and what the call is for.

    Attributes:
        messages: The messages, for a chat model.
        step: The step of the method that makes the call, such as "map" or "reduce"; the name of its run in traces.
    """

    messages: tuple[Message, ...]
    step: str

    def __repr__(self) -> str:
        return f"Prompt({self.step!r}, {len(self.messages)} messages, {self.length:,} characters)"

    @property
    def text(self) -> str:
        """The messages as one text, for a model that completes texts.

        Without a conversation in it nobody's name stands before a message: instructions and question are one text.
        """
        if any(message.role == "assistant" for message in self.messages):
            return as_text(self.messages)
        return "\n\n".join([message.content for message in self.messages])

    @cached_property
    def length(self) -> int:
        """The characters of all messages."""
        return sum([len(message.content) for message in self.messages])


def as_text(messages: tuple[Message, ...]) -> str:
    """A conversation as one text, a line for each message."""
    return "\n".join(f"{_SPEAKERS[message.role]}: {message.content}" for message in messages)


class Usage(NamedTuple):
    """The tokens of one call or of several.

    Attributes:
        input_tokens: The tokens that the model read.
        output_tokens: The tokens that it wrote.
        cached_tokens: The part of `input_tokens` that it had read before.
        estimated: Whether any of it was counted here, since the model did not say.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True)
class Completion:
    """A model's reply to one prompt.

    Attributes:
        text: The reply; JSON where the model gives objects; empty where the call failed.
        parsed: The object, where the model gives objects (structured output).
        error: Why the call failed, or None.
        usage: The model's own count of tokens; None where it gives none.
        seconds: How long the call took.
        finish_reason: Why the model stopped, in its own word, such as "stop" or "length".
        shown: Whether the user has seen a part of it, which cannot be taken back.
    """

    text: str = ""
    parsed: Any = field(default=None, compare=False)
    error: Exception | None = None
    usage: Usage | None = None
    seconds: float = field(default=0.0, compare=False)
    finish_reason: str | None = None
    shown: bool = False


@dataclass(frozen=True)
class Call:
    """One call of the model, as it is recorded in an answer.

    Attributes:
        prompt: What was sent; `prompt.step` says what for.
        completion: What came back.
        usage: The tokens: the model's own figures, or an estimate that is marked as one.
    """

    prompt: Prompt
    completion: Completion
    usage: Usage

    @property
    def step(self) -> str:
        """What the call was for."""
        return self.prompt.step

    def __repr__(self) -> str:
        tokens = f"{self.usage.input_tokens:,} tokens in, {self.usage.output_tokens:,} out"
        failed = "" if self.error is None else f", {type(self.error).__name__}"
        return f"Call({self.step!r}, {tokens}, {self.seconds:.2f} s, {quoted(self.reply)}{failed})"

    @property
    def reply(self) -> str:
        """What came back."""
        return self.completion.text

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.completion.seconds

    @property
    def error(self) -> Exception | None:
        """Why it failed, or None."""
        return self.completion.error
