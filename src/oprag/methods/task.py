"""The task of a method: a question with its options, and the prompts for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from string import ascii_uppercase
from typing import Any

from oprag._internal.masking import describe
from oprag._internal.tokens import count
from oprag.context import Context
from oprag.errors import BudgetError, PromptError, QueryError
from oprag.methods.effects import Retrieve
from oprag.methods.model_calls import Message, Prompt
from oprag.methods.options import COLLAPSE_TOKENS, MethodOptions
from oprag.methods.prompts import ALIASES, OUR_PROMPTS, STEPS, Template
from oprag.methods.window import Room, Window
from oprag.options import ContextOptions, check_question
from oprag.pipeline.render import with_header
from oprag.pipeline.stitch import Passage

__all__ = ["Task"]

_MESSAGE_TOKENS = 4
"""Overhead of each message of a chat model, and of the start of the reply: the role and its delimiters."""
_SPARE_TOKENS = 5
"""Safety margin, as in LlamaIndex: a joined text can have more tokens than its parts counted separately."""
_LONG_NUMBER = 1_000
"""Number of a passage for estimating the length of headers, before the passages are numbered."""


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
        object.__setattr__(self, "context_options", self.options.numbered(self.context_options))

    def asking(self, question: str) -> Task:
        """A copy of the task for another question, without choices and conversation.

        Args:
            question: The other question.
        """
        return replace(self, question=question, choices=(), chat_history=())

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
        if (
            self.chat_history
            and not self.options.condense
            and step != "condense"
            and template == getattr(OUR_PROMPTS, step)
        ):
            # The question is not rewritten as a standalone question, so the model needs the conversation.
            messages = (*messages[:-1], *self.chat_history, messages[-1])
        prompt = Prompt(messages, step)
        if self.window is not None and (needed := self._prompt_tokens(prompt)) > self.window.input_tokens:
            fix = "use fewer or smaller chunks, a shorter prompt, or a model with a larger window"
            if self.window.output_tokens >= self.window.tokens:
                fix = "lower the model's maximum number of output tokens, or set its real context window"
            raise BudgetError(
                f"the prompt of the model call {step!r} needs {needed:,} tokens, too many for {self.window}; {fix}",
                prompt,
            )
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
        instructions = {
            "instruction": f"{self.instruction} {cite_instruction}".rstrip(),
            "cite_instruction": cite_instruction,
        }
        aliases: dict[str, Any] = {}
        fixed_aliases: dict[str, Any] = {}
        for name, others in ALIASES.items():
            if name not in fixed or template.fields.isdisjoint(others):
                continue
            aliases |= dict.fromkeys(others, fixed[name])
            if template.fields.isdisjoint((name, self.question_key) if name == "question" else (name,)):
                # The template has only the alias, so inputs must not override it.
                fixed_aliases |= dict.fromkeys(others, fixed[name])
        return {**aliases, **instructions, **self.inputs, **fixed_aliases, **fixed}

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
        used = self._prompt_tokens(self.prompt(step, **values))
        return Room(self.window.input_tokens - used - _SPARE_TOKENS, self.window)

    def _prompt_tokens(self, prompt: Prompt) -> int:
        return self.count(prompt.text) + _MESSAGE_TOKENS * (len(prompt.messages) + 1)

    def retrieve(self, step: str, **values: Any) -> Retrieve:
        """A request for the context of the question, limited to what fits into the prompt of a step.

        Args:
            step: The step.
            **values: Values of its fields other than the context.
        """
        room = self.room(step, context="", **values)
        return Retrieve((self.question,), () if room is None else (room,))

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
        passages = () if self.context_options.header is None else context.passages
        headers = (self.count(self.shown(one, _LONG_NUMBER)) - self.count(one.text) for one in passages)
        header = max(headers, default=0)
        limit = room.tokens - header
        if limit < 1:
            raise BudgetError(f"no passage fits: {room}; use a shorter prompt or a model with a larger window", room)
        if limit >= self.options.passage_tokens:
            return self
        return replace(self, options=replace(self.options, passage_tokens=limit))

    @cached_property
    def collapse_tokens(self) -> int:
        """Maximum number of tokens of partial answers in one prompt."""
        rooms = (self.room("collapse", answers=""), self.room("reduce", answers=""))
        limit = self.options.collapse_tokens or self.context_options.token_budget or COLLAPSE_TOKENS
        return min([limit, *(room.tokens for room in rooms if room is not None)])
