"""Run methods with the backend of a framework: follow-up questions, records of calls, failures and notes."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from oprag._internal.masking import describe, error_text, masked_error
from oprag._internal.sync_async import Emit, Limit, Parallel, Steps
from oprag._internal.warn import warn
from oprag.adapters.backend import Backend, Pieces, Vectors
from oprag.context import Context
from oprag.errors import EmbeddingError, ModelError, ModelWarning, OpragError
from oprag.methods.answer import Answer, Result
from oprag.methods.effects import Body, Effect, Embed, Generate, ReadSources, Request, Retrieve, Together
from oprag.methods.model_calls import Call, Completion, Prompt, Usage
from oprag.methods.registry import MethodFunction, find_method
from oprag.methods.replies import reply_text
from oprag.methods.task import Task
from oprag.methods.window import Window, cut_note, overflow_in

__all__ = [
    "CUT_SHORT",
    "EMPTY",
    "Answering",
    "Shown",
    "answering",
    "drive",
    "flattened",
    "prepare",
]

T = TypeVar("T")

Answering = Generator[Request, Any, Answer]
"""Yields requests for the driver, and returns the answer."""

Shown = Context | str | Answer
"""Values that a driver emits: contexts when they are retrieved, pieces of the answer, and finally the answer.

An empty piece means that the stream of the model has been opened."""

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
        standalone = _standalone_in(calls[0].completion)
        if standalone is None:
            notes.append("the follow-up could not be rewritten as a standalone question and was used unchanged")
        else:
            method_task = replace(task, question=standalone)
    body: Any = run(method_task)
    if not isinstance(body, Generator):
        raise TypeError(f"method {task.options.method!r} must be a generator function that yields effects")
    reply: Any = None
    with closing(flattened(body)) as requests:
        while isinstance(request := _advanced(requests, reply), Request):
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


def drive(
    task: Task, backend: Backend, limit: Limit, *, method: MethodFunction | None = None, streaming: bool = False
) -> Steps[Answer]:
    """Answer a question, and emit contexts, pieces of the answer and the answer (see `Shown`).

    Args:
        task: The question.
        backend: The components of the framework.
        limit: Limit of concurrent calls.
        method: The method; the method of the options by default.
        streaming: Whether to stream the final reply.
    """
    failed = _failed if task.options.on_error == "raise" else None
    reply: Any = None
    idle_seconds = 0.0
    with closing(answering(task, method)) as requests:
        while isinstance(request := _advanced(requests, reply), Request):
            if isinstance(request, Generate):
                if streaming and request.final and len(request.prompts) == 1:
                    pieces = Pieces(request.hold)
                    place = yield limit.taken()
                    try:
                        completion = yield from backend.stream(request.prompts[0], pieces)
                    finally:
                        place.release()
                    reply = (pieces.timed(completion),)
                    idle_seconds += pieces.idle_seconds
                else:
                    bodies = [partial(backend.complete, prompt) for prompt in request.prompts]
                    reply = tuple((yield Parallel(bodies, limit, failed)))
            elif isinstance(request, Retrieve):
                found = yield Parallel([partial(backend.retrieve, one) for one in request.questions], limit)
                reply = tuple(request.fitted(found))
                for context in reply:
                    started = time.perf_counter()
                    yield Emit(context)
                    idle_seconds += time.perf_counter() - started
            elif isinstance(request, Embed):
                reply = _check_counts(request, (yield from backend.embed(request.questions, request.texts)))
            else:
                reply = tuple((yield Parallel([partial(backend.read, one) for one in request.sources], limit)))
    # Exclude the time that the caller spent on emitted values.
    answer = replace(request, seconds=max(0.0, request.seconds - idle_seconds))
    yield Emit(answer)
    return answer


def prepare(task: Task, backend: Backend) -> Steps[None]:
    """Do the work that compared methods share, before any of them is timed.

    Rewrites a follow-up as a standalone question and retrieves its context; the backend caches both.
    """
    question = task.question
    if task.follows_up:
        prompt = task.prompt("condense")
        reply = backend.known[prompt] = yield from backend.complete(prompt)
        question = _standalone_in(reply) or question
    yield from backend.retrieve(question)


def _advanced(requests: Generator[Request, Any, T], reply: Any) -> Request | T:
    """Send a reply and return the next request, or the result at the end."""
    try:
        return requests.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result


def flattened(body: Body) -> Generator[Request, Any, Result]:
    """Wrap a body so that it yields only requests; `Together` effects are run here."""
    reply: Any = None
    try:
        while True:
            try:
                effect = body.send(reply)
            except StopIteration as stop:
                result: Result = stop.value
                return result
            if not isinstance(effect, Effect):
                raise TypeError(f"a method must yield effects, such as Generate, got {describe(effect)}")
            reply = (yield from _together(effect.bodies)) if isinstance(effect, Together) else (yield effect)
    finally:
        body.close()


def _together(bodies: tuple[Body, ...]) -> Generator[Request, Any, tuple[Result, ...]]:
    """Run bodies in rounds: in each round, every body yields one request, and requests of the same kind are merged.

    So the order of requests does not depend on their duration, and the prompts of all bodies are sent concurrently,
    under one limit.
    """
    running = [flattened(body) for body in bodies]
    results: dict[int, Result] = {}
    waiting: dict[int, Request] = {}

    def advance(number: int, reply: Any) -> None:
        try:
            waiting[number] = running[number].send(reply)
        except StopIteration as stop:
            results[number] = stop.value

    try:
        for number in range(len(running)):
            advance(number, None)
        while waiting:
            pending, waiting = waiting, {}
            for kind in (Retrieve, ReadSources, Embed, Generate):
                group = {number: request for number, request in pending.items() if isinstance(request, kind)}
                if not group:
                    continue
                replies = yield from _merged(list(group.values()))
                for number, reply in zip(group, replies, strict=True):
                    advance(number, reply)
    finally:
        for body in running:
            body.close()
    return tuple(results[number] for number in range(len(running)))


def _merged(requests: list[Any]) -> Generator[Request, Any, list[Any]]:
    """Merge requests of the same kind into one, and split its reply among them."""
    first = requests[0]
    if isinstance(first, ReadSources):
        # A source that several bodies need is read once.
        names = tuple(dict.fromkeys(_joined(requests, "sources")))
        read = dict(zip(names, (yield ReadSources(names)), strict=True))
        return [tuple(read[name] for name in request.sources) for request in requests]
    if isinstance(first, Embed):
        questions, texts = yield Embed(_joined(requests, "questions"), _joined(requests, "texts"))
        pairs = zip(_split(questions, requests, "questions"), _split(texts, requests, "texts"), strict=True)
        return list(pairs)
    if isinstance(first, Retrieve):
        rooms = tuple(room for request in requests for room in request.rooms or (None,) * len(request.questions))
        reply = yield Retrieve(_joined(requests, "questions"), rooms if any(rooms) else ())
        return _split(reply, requests, "questions")
    # Not final: the last reply of an inner body is not the answer to the user's question, so it is not streamed.
    reply = yield Generate(_joined(requests, "prompts"))
    return _split(reply, requests, "prompts")


def _joined(requests: list[Any], name: str) -> tuple[Any, ...]:
    """The concatenated values of a field of all requests."""
    return tuple(one for request in requests for one in getattr(request, name))


def _split(values: Any, requests: list[Any], name: str) -> list[Any]:
    """Split values into those of each request, by the lengths of a field."""
    pieces, start = [], 0
    for request in requests:
        end = start + len(getattr(request, name))
        pieces.append(values[start:end])
        start = end
    return pieces


def _standalone_in(reply: Completion) -> str | None:
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


def _failed(completion: Completion) -> bool:
    return completion.error is not None


def _check_counts(request: Embed, vectors: Vectors) -> Vectors:
    """Return the vectors; raise unless there is one per text."""
    given: Any
    for texts, given in zip((request.questions, request.texts), vectors, strict=True):
        number = 0 if given is None else len(given)
        if number != len(texts):
            raise EmbeddingError(f"the embedder returned {number} vectors for {len(texts)} texts", given)
    return vectors
