"""The task of a method: a question with its options, its prompts, and the parts of a context that a prompt contains."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from string import ascii_uppercase
from typing import Any, NamedTuple

from oprag._internal.masking import describe
from oprag._internal.tokens import TokenCounter, count
from oprag.chunk import Chunk, Passage, Span
from oprag.context import Context
from oprag.errors import BudgetError, PromptError, QueryError
from oprag.methods.options import COLLAPSE_TOKENS, MethodOptions
from oprag.methods.prompts import ALIASES, OUR_PROMPTS, STEPS, Message, Prompt, Template
from oprag.methods.window import Room, Window
from oprag.options import ContextOptions, check_question
from oprag.pipeline.render import between, counter_of_shown, render, with_header
from oprag.pipeline.stitch import stitch

__all__ = ["Part", "Task", "combined", "packed", "split_passages"]


@dataclass(frozen=True)
class Task:
    """A question to answer, with its options.

    Attributes:
        question: The question.
        options: The method options.
        context_options: The context options, also used to count tokens and format headers.
        choices: The choices of a multiple-choice question.
        chat_history: The conversation before the question.
        inputs: Other values for fields of prompts; they never override the question, the conversation or the context.
        question_key: Additional field name for the question in prompts.
        window: The model's context window, if known; prompts that exceed it are rejected.

    Raises:
        QueryError: The question is empty or not a string, or the choices are not a list of at most 26 strings.
    """

    question: str
    options: MethodOptions = field(default_factory=MethodOptions)
    context_options: ContextOptions = field(default_factory=ContextOptions)
    choices: tuple[str, ...] = ()
    chat_history: tuple[Message, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    question_key: str = "question"
    window: Window | None = None

    def __post_init__(self) -> None:
        check_question(self.question)
        choices: Any = self.choices
        if isinstance(choices, list):
            choices = tuple(choices)
            object.__setattr__(self, "choices", choices)
        if not isinstance(choices, tuple) or not all(isinstance(choice, str) for choice in choices):
            raise QueryError(f"choices must be a list of strings, got {describe(choices)}", choices)
        if len(choices) > len(ascii_uppercase):
            raise QueryError(f"there can be at most {len(ascii_uppercase)} choices, got {len(choices)}", choices)
        if self.options.cite:
            object.__setattr__(self, "context_options", self.options.numbered(self.context_options))

    @property
    def follows_up(self) -> bool:
        """Whether the question is a follow-up, which is first rewritten as a standalone question."""
        return bool(self.chat_history) and self.options.condense

    @property
    def asked(self) -> str:
        """The question for prompts, including its choices."""
        return f"{self.question}\n{self._lettered_choices}" if self.choices else self.question

    @property
    def instruction(self) -> str:
        """The instruction for open or multiple-choice questions."""
        prompts = self.options.prompts
        return prompts.choice_instruction if self.choices else prompts.instruction

    def prompt(self, step: str, **values: Any) -> Prompt:
        """Build the prompt of a step.

        Args:
            step: The step.
            **values: Values of its fields other than those that every prompt may have.

        Raises:
            PromptError: The step is unknown, or the template needs a missing value.
            BudgetError: The prompt does not fit the model's context window.
        """
        prompts = self.options.prompts
        if step not in STEPS:
            raise PromptError(f"unknown prompt {step!r}; expected one of {', '.join(STEPS)}", step)
        template: Template = getattr(prompts, step)
        messages = template.messages(self._values(template, values))
        if self._cites and "context" in values and template.fields.isdisjoint(("instruction", "cite_instruction")):
            # The user's template has no field for the citation instruction, so append it.
            last = messages[-1]
            messages = (*messages[:-1], last._replace(content=f"{last.content}\n{prompts.cite_instruction}"))
        if self.chat_history and not self.options.condense and template == getattr(OUR_PROMPTS, step):
            # The question is not rewritten as a standalone question, so the model needs the conversation.
            messages = (*messages[:-1], *self.chat_history, messages[-1])
        prompt = Prompt(messages, step)
        if self.window is not None:
            self.window.after(prompt, self.context_options.count_tokens)
        return prompt

    def _values(self, template: Template, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values of all fields; inputs never override the question, the conversation or the context."""
        question = self.asked
        fixed = {
            "question": question,
            self.question_key: question,
            "chat_history": self.chat_history,
            "choices": self._lettered_choices,
            **values,
        }
        cite_instruction = self.options.prompts.cite_instruction if self._cites else ""
        defaults: dict[str, Any] = {
            "instruction": f"{self.instruction} {cite_instruction}".rstrip(),
            "cite_instruction": cite_instruction,
        }
        aliases: dict[str, Any] = {}
        for name, others in ALIASES.items():
            if name in fixed:
                # Inputs may only override an alias if the template has the field itself.
                names = (name, self.question_key) if name == "question" else (name,)
                target = aliases if template.fields.isdisjoint(names) else defaults
                target.update(dict.fromkeys(others, fixed[name]))
        return {**defaults, **self.inputs, **aliases, **fixed}

    @property
    def _cites(self) -> bool:
        """Whether to request citations; not for multiple-choice questions, whose answer is only a letter."""
        return self.options.cite and not self.choices

    @cached_property
    def _lettered_choices(self) -> str:
        return "\n".join(f"{letter}. {choice}" for letter, choice in zip(ascii_uppercase, self.choices, strict=False))

    def count(self, text: str) -> int:
        """Number of tokens of a text, by the token counter of the context.

        Args:
            text: The text.
        """
        return count(text, self.context_options.count_tokens)

    def shown(self, passage: Passage, number: int) -> str:
        """The text of a passage with its header.

        Args:
            passage: The passage.
            number: Number of the passage.
        """
        return with_header(passage, self.context_options.header, number)

    def room(self, step: str, **values: Any) -> Room | None:
        """The free part of the model's context window after a prompt with these values; None if unknown.

        Args:
            step: The step of the prompt.
            **values: The values of its fields.

        Raises:
            PromptError: The step is unknown, or the template needs a missing value.
            BudgetError: The prompt alone does not fit.
        """
        if self.window is None:
            return None
        return self.window.after(replace(self, window=None).prompt(step, **values), self.context_options.count_tokens)

    def reading(self, context: Context, room: Room | None) -> Task:
        """A copy of the task with `passage_tokens` reduced so that a passage with its header fits.

        Args:
            context: The context whose passages are read.
            room: The free part of the window, from `room`; None if unknown.

        Raises:
            BudgetError: Not even a passage of one token fits.
        """
        if room is None:
            return self
        counter = counter_of_shown(self.context_options)
        passages = () if self.context_options.header is None else context.passages
        # With a long number, since the passages are not numbered yet.
        headers = (self.count(self.shown(one, 1_000)) - count(one.text, counter) for one in passages)
        limit = room.tokens - max(headers, default=0)
        if limit < 1:
            raise BudgetError(f"no passage fits: {room}; use a shorter prompt or a model with a larger window", room)
        return replace(self, options=replace(self.options, passage_tokens=min(limit, self.options.passage_tokens)))

    @cached_property
    def collapse_tokens(self) -> int:
        """Maximum number of tokens of partial answers in one prompt."""
        rooms = (self.room("collapse", answers=""), self.room("reduce", answers=""))
        limit = self.options.collapse_tokens or self.context_options.token_budget or COLLAPSE_TOKENS
        return min([limit, *(room.tokens for room in rooms if room is not None)])


# Passages, and what one model call reads of them.


class Part(NamedTuple):
    """What one model call reads."""

    text: str  # the rendered passages
    passages: tuple[Passage, ...]


def split_passages(context: Context, passage_tokens: int) -> tuple[Passage, ...]:
    """Split a context into passages of about `passage_tokens` or fewer tokens, in order.

    Stitched passages are split between chunks; a single chunk that is too long is split after whitespace.

    Args:
        context: The context.
        passage_tokens: Maximum number of tokens of a passage, by the token counter of the context.

    Raises:
        TokenizerError: The counter returned no usable count.
    """
    separator, counter = context.options.separator, counter_of_shown(context.options)
    found: list[Passage] = []
    # If the chunks are separate passages (`cite=True`), stitch them first: one call per chunk would be many calls.
    for passage in context.passages if context.options.stitch else stitch(context.kept, separator):
        if count(passage.text, counter) <= passage_tokens:
            found.append(passage)
            continue
        for group in _chunk_groups(passage.chunks, passage_tokens, separator, counter):
            for part in stitch(group, separator):
                found += _cut(part, passage_tokens, counter)
    return tuple(passage for passage in found if passage.text.strip())


def packed(task: Task, passages: Sequence[Passage]) -> list[Part]:
    """Pack passages into what model calls read, in order.

    Adjacent passages with at most `passage_tokens` together share a call, and are rendered as in a context, with
    headers, separators and gaps. With `cite=True`, each passage has a separate call.

    Args:
        task: The question with its options.
        passages: The passages, as returned by `split_passages`.

    Raises:
        TokenizerError: The counter returned no usable count.
    """
    context_options, limit = task.context_options, task.options.passage_tokens
    groups: list[list[Passage]] = []
    total = 0
    for number, passage in enumerate(passages, 1):
        shown = task.shown(passage, number)
        if groups and not task.options.cite:
            tokens = task.count(between(groups[-1][-1], passage, context_options) + shown)
            if total + tokens <= limit:
                groups[-1].append(passage)
                total += tokens
                continue
        groups.append([passage])
        total = task.count(shown)
    numbers = accumulate(map(len, groups), initial=1)
    pairs = zip(groups, numbers, strict=False)
    return [Part(render(group, context_options, first=number), tuple(group)) for group, number in pairs]


def combined(
    task: Task, step: str, answers: Sequence[str], join: Callable[[Sequence[str]], str]
) -> tuple[Prompt, tuple[str, ...]]:
    """The prompt that combines answers, and a note if the longest ones had to be cut to fit the model's window."""
    limit = 0
    while True:
        try:
            prompt = task.prompt(step, answers=join(answers))
        except BudgetError:
            limit = (limit or max(map(task.count, answers))) * 3 // 4
            if not limit:
                raise
        else:
            return prompt, (f"answers were cut to fit {task.window}",) if limit else ()
        answers = [text[: _cut_end(text, 0, limit, task.context_options.count_tokens)] for text in answers]


def _chunk_groups(chunks: Iterable[Chunk], limit: int, separator: str, counter: TokenCounter) -> Iterator[list[Chunk]]:
    """Group adjacent chunks that fit into one passage."""
    group: list[Chunk] = []
    total = 0
    for chunk in chunks:
        # The separator replaces whitespace that the splitter stripped.
        tokens = count(f"{separator}{chunk.text}" if group else chunk.text, counter)
        if group and total + tokens > limit:
            # Joined, overlapping chunks have fewer tokens; counting the joined text is slow, so only done here.
            joined = count(separator.join(part.text for part in stitch([*group, chunk], separator)), counter)
            if joined > limit:
                yield group
                group, total = [], 0
                tokens = count(chunk.text, counter)
            else:
                total = joined - tokens
        group.append(chunk)
        total += tokens
    if group:
        yield group


def _cut(passage: Passage, limit: int, counter: TokenCounter) -> Iterator[Passage]:
    """Split a passage that is too long into consecutive parts, without those that are only whitespace."""
    text, spans = passage.text, passage.spans
    # The spans of the parts are known only if the span has the length of the text.
    span = spans[0] if len(spans) == 1 and spans[0].end - spans[0].start == len(text) else None
    start = 0
    while start < len(text):
        end = _cut_end(text, start, limit, counter)
        part_spans = () if span is None else (Span(span.start + start, span.start + end, span.page),)
        if not text[start:end].isspace():
            yield Passage(text[start:end], passage.chunks, spans if end - start == len(text) else part_spans)
        start = end


def _cut_end(text: str, start: int, limit: int, counter: TokenCounter) -> int:
    """End offset of the part that starts at `start`: after the last whitespace within the limit."""
    low, high = start + 1, min(start + limit, len(text))
    # Double the length at each step, so that only a small part of a long text is counted.
    while count(text[start:high], counter) <= limit:
        if high == len(text):
            return high
        low, high = high, min(start + 2 * (high - start), len(text))
    # Approximate, since the number of tokens need not grow with the length.
    last = bisect_right(range(high), limit, low + 1, high, key=lambda end: count(text[start:end], counter)) - 1
    for end in range(last, start, -1):
        if text[end - 1].isspace() and not text[start:end].isspace():
            return end
    return last
