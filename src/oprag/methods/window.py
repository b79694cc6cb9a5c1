"""A model's context window, and contexts shortened to the part of it that prompts leave free."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from oprag._internal.tokens import count
from oprag.context import Context, assemble
from oprag.errors import BudgetError

__all__ = ["Room", "Window", "cut_note", "within"]


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
    """The free part of a window after a prompt.

    Attributes:
        tokens: Number of free tokens.
        window: The window.
    """

    tokens: int
    window: Window

    def __str__(self) -> str:
        return f"{self.window} leaves {max(0, self.tokens):,} after the rest of the prompt"


def within(context: Context, room: Room) -> Context:
    """Rebuild a context with the room as its token budget if it is longer.

    A context without inputs, which was constructed manually, stays unchanged.
    """
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
