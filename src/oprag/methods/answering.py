"""Answer a question with a method: follow-up questions, records of model calls, failures and notes."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

from oprag.errors import ModelError, ModelWarning, OpragError
from oprag.masking import error_text, masked_error
from oprag.methods.answer import Answer, Result
from oprag.methods.effects import Generate, Request, Retrieve, advanced, flattened
from oprag.methods.model_calls import Call, Completion, Prompt, Usage
from oprag.methods.registry import MethodFunction, find_method
from oprag.methods.replies import reply_text
from oprag.methods.task import Task
from oprag.methods.window import Window, cut_note, overflow_in
from oprag.warn import warn

__all__ = ["CUT_SHORT", "EMPTY", "Answering", "answering", "standalone_in"]

Answering = Generator[Request, Any, Answer]
"""Yields requests for the driver, and returns the answer."""

CUT_SHORT = "a reply was cut short at the model's limit of output tokens"
EMPTY = "the model's reply was empty"
"""Notes of answers; `oprag.compare` counts stored answers by their text."""

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

_CUT_SHORT = {"length", "model_length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"}
"""Finish reasons of truncated replies: "model_length" is Mistral's, the last is Anthropic's for a full context."""


def answering(task: Task, method: MethodFunction | None = None) -> Answering:
    """Answer a question; yields requests for a driver.

    Args:
        task: The question.
        method: The method; the method of the options by default.

    Raises:
        OptionError: The method is unknown.
        ModelError: A call failed, and `on_error="raise"`, part of its reply was already streamed, or no answer is left
            without it.
    """
    started = time.perf_counter()
    calls: list[Call] = []
    notes: list[str] = []
    method_task, standalone = task, None
    run = method or find_method(task.options.method).run
    if task.follows_up:
        condense = Generate((task.prompt("condense"),))
        calls += _recorded(condense, (yield condense), task)
        standalone = standalone_in(calls[0].completion)
        if standalone is None:
            notes.append("the follow-up could not be rewritten as a standalone question and was used unchanged")
        else:
            method_task = replace(task, question=standalone)
    body: Any = run(method_task)
    if not isinstance(body, Generator):
        raise TypeError(f"method {task.options.method!r} must be a generator function that yields effects")
    reply: Any = None
    with closing(flattened(body)) as requests:
        while isinstance(request := advanced(requests, reply), Request):
            reply = yield request
            if isinstance(request, Retrieve):
                notes += [note for pair in zip(reply, request.rooms, strict=False) if (note := cut_note(*pair))]
            elif isinstance(request, Generate):
                calls += _recorded(request, reply, task)
    result: Any = request
    if not isinstance(result, Result):
        raise TypeError(f"method {task.options.method!r} must return a Result, got {type(result).__name__}")
    return Answer(
        question=task.question,
        text=result.text,
        method=task.options.method,
        contexts=result.contexts,
        calls=tuple(calls),
        parsed=result.parsed,
        standalone_question=standalone,
        route=result.route,
        answers=result.answers,
        passages=result.passages,
        notes=(*result.notes, *notes, *_notes_on_calls(result, calls, task)),
        seconds=time.perf_counter() - started,
        cited=task.options.cite,
    )


def standalone_in(reply: Completion) -> str | None:
    """The standalone question in the reply to the "condense" prompt; None if the reply is empty."""
    return reply_text(reply, "condense").strip() or None


def _recorded(request: Generate, replies: Sequence[Completion | None], task: Task) -> list[Call]:
    """Record the calls of a request; raise if one failed and cannot be skipped."""
    # A reply is None if its prompt was not sent because another call had failed.
    calls = [
        Call(prompt, completion, _usage(prompt, completion, task))
        for prompt, completion in zip(request.prompts, replies, strict=True)
        if completion is not None
    ]
    for call in calls:
        if call.error is not None and (task.options.on_error == "raise" or call.completion.streamed):
            raise ModelError(_described(call, request.prompts, task), call) from call.error
    return calls


def _notes_on_calls(result: Result, calls: Sequence[Call], task: Task) -> list[str]:
    """Notes on failed calls and truncated or empty replies; raise if failed calls left no answer."""
    notes: list[str] = []
    failed = [call for call in calls if call.error is not None]
    if failed:
        number = f"{len(failed)} of {len(calls)} calls failed"
        first = f"the first: {_described(failed[0], [call.prompt for call in calls], task)}"
        if not result.empty and result.parsed is None and not result.text.strip():
            raise ModelError(f"{number}, so there is no answer; {first}", failed[0]) from failed[0].error
        notes.append(f"{number} and were skipped")
        warn(f"{notes[-1]}; {first}", ModelWarning)
    if any((call.completion.finish_reason or "").casefold() in _CUT_SHORT for call in calls):
        notes.append(CUT_SHORT)
    if calls and not calls[-1].reply.strip() and not result.text.strip() and not failed:
        notes.append(EMPTY)
    return notes


def _usage(prompt: Prompt, completion: Completion, task: Task) -> Usage:
    """Token usage as the model reports it, else an estimate; zero for a failed call."""
    if completion.usage is not None:
        return completion.usage
    if completion.error is not None:
        return Usage()
    return Usage(task.count(prompt.text), task.count(completion.text), estimated=True)


def _described(call: Call, prompts: Sequence[Prompt], task: Task) -> str:
    same_step = [prompt for prompt in prompts if prompt.step == call.step]
    number = next(number for number, prompt in enumerate(same_step, 1) if prompt is call.prompt)
    which = f" ({number} of {len(same_step)})" if len(same_step) > 1 else ""
    # Join the lines of multi-line messages.
    reason = " ".join(masked_error(call.error).split())
    return f"the model call {call.step!r}{which} failed: {reason}{_limit_that_fits(call, task)}"


def _limit_that_fits(call: Call, task: Task) -> str:
    """The option with which a prompt that was too long for the model would fit; empty for other errors."""
    overflow = overflow_in(error_text(call.error))
    method = task.options.inner_method if task.options.method in _NESTING else task.options.method
    option = _LIMITS_OF_ANSWERS.get(method, "token_budget") if call.step == "answer" else _LIMITS.get(call.step)
    if overflow is None or option is None:
        return ""
    reply = overflow.reply or overflow.window // _REPLY_SHARE
    # In our tokens, which may be larger or smaller than those of the model.
    counted = task.count(call.prompt.text)
    scale = counted / overflow.prompt if overflow.prompt else min(1.0, counted / overflow.window)
    window = Window(int(overflow.window * scale), int(reply * scale))
    values = {"context": "", "answers": "", "existing_answer": "", "count": task.options.variants}
    try:
        room = replace(task, window=window).room(call.step, **values)
    except OpragError:
        return ""  # too long even so, or a prompt of a custom method
    tokens = 0 if room is None else room.tokens // 2 if method == "refine" else room.tokens
    # Two digits, rounded down, since the scale is an estimate.
    tokens -= tokens % 10 ** max(0, len(str(tokens)) - 2)
    return f"; set {option}={tokens}" if tokens > 0 else ""
