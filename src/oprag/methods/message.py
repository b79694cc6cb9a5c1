"""What is sent to a model, in no framework's words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

__all__ = ["Message", "Prompt", "Role", "as_text"]

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
