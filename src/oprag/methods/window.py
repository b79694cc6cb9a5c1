"""A model's context window, and contexts shortened to the part of it that prompts leave free."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from oprag._internal.tokens import TokenCounter, count
from oprag.context import Context, assemble
from oprag.errors import BudgetError
from oprag.methods.prompts import Prompt

__all__ = ["Room", "Window", "cut_note", "within"]

_MESSAGE_TOKENS = 4
"""Overhead of each message of a chat model, and of the start of the reply: the role and its delimiters."""
_SPARE_TOKENS = 5
"""Safety margin, as in LlamaIndex: a joined text can have more tokens than its parts counted separately."""


class Window(NamedTuple):
    """The context window of a model, in tokens.

    Attributes:
        tokens: Size of the window.
        output_tokens: Tokens reserved for the reply.
        added_tokens: Tokens that the model adds to each prompt, such as a built-in system prompt.
    """

    tokens: int
    output_tokens: int = 0
    added_tokens: int = 0

    @property
    def input_tokens(self) -> int:
        """Maximum number of tokens in a prompt."""
        return self.tokens - self.output_tokens - self.added_tokens

    def after(self, prompt: Prompt, counter: TokenCounter) -> Room:
        """The free part after a prompt.

        Args:
            prompt: The prompt.
            counter: The token counter.

        Raises:
            BudgetError: The prompt does not fit.
        """
        needed = count(prompt.text, counter) + _MESSAGE_TOKENS * (len(prompt.messages) + 1)
        if needed > self.input_tokens:
            raise BudgetError(
                f"the prompt of the model call {prompt.step!r} needs {needed:,} tokens, too many for {self}; use fewer "
                "or smaller chunks, a shorter prompt, fewer output tokens, or a model with a larger window",
                prompt,
            )
        return Room(self.input_tokens - needed - _SPARE_TOKENS, self)

    def __str__(self) -> str:
        taken = [
            f"{tokens:,} {use}"
            for tokens, use in (
                (self.output_tokens, "reserved for the reply"),
                (self.added_tokens, "added to each prompt by the model"),
            )
            if tokens
        ]
        about = f" ({', '.join(taken)})" if taken else ""
        return f"the model's context window of {self.tokens:,} tokens{about}"


class Room(NamedTuple):
    """The free part of a window after a prompt."""

    tokens: int  # number of free tokens
    window: Window

    def __str__(self) -> str:
        return f"{self.window} leaves {max(0, self.tokens):,} after the rest of the prompt"


def within(context: Context, room: Room) -> Context:
    """Rebuild a context with the room as its token budget if it is longer and has inputs."""
    inputs, context_options = context.inputs, context.options
    budget = context_options.token_budget
    if inputs is None or context.tokens <= room.tokens or (budget is not None and budget <= room.tokens):
        return context
    try:
        # Count our own text (no `show`), since that is what the prompt contains.
        cut = assemble(replace(inputs, show=None), replace(context_options, token_budget=max(1, room.tokens)))
    except BudgetError as error:
        raise BudgetError(
            f"none of the {len(context.kept)} retrieved chunks fits: {room}, but the smallest chunk needs "
            f"{min(count(chunk.text, context_options.count_tokens) for chunk in context.kept):,}; "
            "use smaller chunks, a shorter prompt, or a model with a larger window",
            room,
        ) from error
    dropped = [
        drop._replace(detail=f"{drop.detail} (the model's context window is {room.window.tokens:,} tokens)")
        if drop.reason == "token_budget"
        else drop
        for drop in cut.dropped
    ]
    return replace(cut, dropped=tuple(dropped), inputs=inputs)


def cut_note(context: Context, room: Room | None) -> str | None:
    """The note for an answer whose context was shortened to its room; None if it was not."""
    if room is None or context.options.token_budget != room.tokens:
        return None
    number = sum(drop.reason == "token_budget" for drop in context.dropped)
    return f"{number} retrieved chunks were dropped, since they do not fit {room.window}"
