"""The option that makes a prompt fit, for the error of a server that rejected it as too long for its model."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

from oprag._internal.masking import error_text
from oprag.errors import OpragError
from oprag.methods.answer import Call
from oprag.methods.task import Task
from oprag.methods.window import Window

__all__ = ["Overflow", "fitting_option", "overflow_in"]

_NESTING = ("step_down", "reciprocal")
_LIMITS = {
    "route": "token_budget",
    "variants": "token_budget",
    "map": "passage_tokens",
    "rerank": "passage_tokens",
    "refine": "passage_tokens",
    "collapse": "collapse_tokens",
    "reduce": "collapse_tokens",
}
_LIMITS_OF_ANSWERS = {
    "refine": "passage_tokens",
    "long_context": "source_token_budget",
    "self_route": "source_token_budget",
}
"""The options that limit the prompts of steps; the prompt of the step "answer" depends on the method."""
_REPLY_SHARE = 8
"""The reply gets an eighth of the window if the error does not state what is reserved for it."""

_NUMBER = r"(\d{1,3}(?:,\d{3})++|\d{1,7})\b"
# As in llama.cpp, LM Studio, OpenAI, vLLM, Anthropic, Gemini and Mistral.
_STATED_WINDOW = re.compile(
    r"(?:(?:context (?:size|length|window)|model length|n_ctx|tokens allowed|tokens >)\W{1,5}(?:(?:is|of|only)\s){0,2}"
    rf"{_NUMBER}|\b{_NUMBER} maximum context)",
    re.IGNORECASE,
)
_STATED_REPLY = re.compile(rf"\b{_NUMBER} (?:in|for) the completion|is too large: {_NUMBER}", re.IGNORECASE)


def fitting_option(call: Call, task: Task) -> str | None:
    """The option, with a value, with which the prompt of a failed call would fit; None for other errors."""
    overflow = overflow_in(error_text(call.error))
    method = task.options.inner_method if task.options.method in _NESTING else task.options.method
    option = _LIMITS_OF_ANSWERS.get(method, "token_budget") if call.step == "answer" else _LIMITS.get(call.step)
    if overflow is None or option is None:
        return None
    reply = overflow.reply or overflow.window // _REPLY_SHARE
    # In our tokens, which may be larger or smaller than those of the model.
    counted = task.count(call.prompt.text)
    scale = counted / overflow.prompt if overflow.prompt else min(1.0, counted / overflow.window)
    window = Window(int(overflow.window * scale), int(reply * scale))
    values = {"context": "", "answers": "", "existing_answer": "", "count": task.options.variants}
    try:
        room = replace(task, window=window).room(call.step, **values)
    except OpragError:
        return None  # too long even so, or a prompt of a custom method
    tokens = 0 if room is None else room.tokens // 2 if method == "refine" else room.tokens
    # Two digits, rounded down, since the scale is an estimate.
    tokens -= tokens % 10 ** max(0, len(str(tokens)) - 2)
    return f"{option}={tokens}" if tokens > 0 else None


class Overflow(NamedTuple):
    """What a server says of a prompt that is too long for its model, in tokens of the model."""

    window: int  # size of the window
    prompt: int | None  # tokens of the prompt; None if not stated
    reply: int | None  # tokens reserved for the reply; None if not stated


def overflow_in(message: str) -> Overflow | None:
    """Read the error of a model; None if it does not state a window that was exceeded."""
    window, reply = (_stated(pattern.search(message)) for pattern in (_STATED_WINDOW, _STATED_REPLY))
    if not window:
        return None
    numbers = {_number(found[1]) for found in re.finditer(rf"\b{_NUMBER}", message)} - {window}
    prompts = {number for number in numbers if number + (reply or 0) > window}
    if reply:
        prompts -= {number + reply for number in prompts}
    return Overflow(window, max(prompts, default=None), reply)


def _stated(found: re.Match[str] | None) -> int | None:
    return None if found is None else _number(found[found.lastindex or 0])


def _number(text: str) -> int:
    return int(text.replace(",", ""))
