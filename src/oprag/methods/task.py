"""What a method works on: one question, and the options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from string import ascii_uppercase
from typing import Any

from oprag.assembly.render import with_header
from oprag.assembly.stitch import Passage
from oprag.context import Context
from oprag.errors import BudgetError, PromptError, QueryError
from oprag.masking import describe
from oprag.methods.effects import Retrieve
from oprag.methods.model_calls import Message, Prompt
from oprag.methods.options import COLLAPSE_TOKENS, MethodOptions
from oprag.methods.prompts import ALIASES, OUR_PROMPTS, STEPS, Template
from oprag.methods.window import Room, Window
from oprag.options import ContextOptions
from oprag.question import check_question
from oprag.tokens import count

__all__ = ["Task"]

_MESSAGE_TOKENS = 4
"""What chat models add to each message, and once to begin their reply: a role and its marks."""
_SPARE_TOKENS = 5
"""What is left free of a window, as LlamaIndex leaves it: texts may have more tokens together than one by one."""


@dataclass(frozen=True)
class Task:
    """One question to answer.

    Attributes:
        question: The question.
        options: How to answer it.
        context_options: How its contexts are made; counts tokens, and writes headers.
        choices: The answers to choose from, for a multiple-choice question.
        chat_history: What was said before.
        inputs: Other values that prompts may use. They never stand in place of the question, the conversation or
            what is read.
        question_key: One more name that the question has in prompts.
        window: The model's context window, if it is known: a ceiling for what each prompt has.

    Raises:
        QueryError: The question is empty or no string, or the choices are no list of at most 26 strings.
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
            raise QueryError(f"choices must be strings, got {describe(choices)}", choices)
        if len(choices) > len(ascii_uppercase):
            raise QueryError(f"there can be at most {len(ascii_uppercase)} choices, got {len(choices)}", choices)
        object.__setattr__(self, "context_options", self.options.numbered(self.context_options))

    def asking(self, question: str) -> Task:
        """A task for another question of the same user; the choices and the conversation belong to this one."""
        return replace(self, question=question, choices=(), chat_history=())

    def prompt(self, step: str, **values: Any) -> Prompt:
        """The prompt of a step, with these values in its fields beside those that every prompt may have.

        Raises:
            PromptError: There is no such step, or the template wants a value that there is not.
            BudgetError: The prompt does not fit the model's context window.
        """
        prompts = self.options.prompts
        if step not in STEPS:
            raise PromptError(f"there is no prompt {step!r}; there are {', '.join(STEPS)}", step)
        template: Template = getattr(prompts, step)
        messages = template.messages(self._values(template, values))
        if self._cites and "context" in values and template.fields.isdisjoint(("instruction", "cite_instruction")):
            # Who writes a prompt without our fields asks for markers all the same.
            last = messages[-1]
            messages = (*messages[:-1], last._replace(content=f"{last.content}\n{prompts.cite_instruction}"))
        if self._follows_on and step != "condense" and template == getattr(OUR_PROMPTS, step):
            messages = (*messages[:-1], *self.chat_history, messages[-1])
        prompt = Prompt(messages, step)
        if self.window is not None and (needed := self._tokens(prompt)) > self.window.input_tokens:
            remedy = "use fewer or smaller chunks, a shorter prompt, or a model with a larger window"
            if self.window.output_tokens >= self.window.tokens:
                remedy = "lower the model's maximum number of output tokens, or set its real context window"
            raise BudgetError(
                f"the prompt of the model call {step!r} needs {needed:,} tokens, too many for {self.window}; {remedy}",
                prompt,
            )
        return prompt

    def room(self, step: str, **values: Any) -> Room | None:
        """What the model's context window leaves beside a prompt with these values; None where it is not known.

        Raises:
            PromptError: As for `prompt`.
            BudgetError: The prompt alone does not fit.
        """
        if self.window is None:
            return None
        used = self._tokens(self.prompt(step, **values))
        return Room(self.window.input_tokens - used - _SPARE_TOKENS, self.window)

    def retrieve(self, step: str, **values: Any) -> Retrieve:
        """Ask for the context of the question, which is going to be read in one prompt of this step.

        Args:
            step: The step.
            **values: The values of the prompt beside the context.
        """
        room = self.room(step, context="", **values)
        return Retrieve((self.question,), () if room is None else (room,))

    def reading(self, context: Context, room: Room | None) -> Task:
        """The task with passages that fit into a room, each under its header.

        Raises:
            BudgetError: The room has none for a passage.
        """
        if room is None:
            return self
        header = 0
        if self.context_options.header is not None:
            # With a long number, since none is known yet.
            shown = [(self.shown(passage, 1_000), passage.text) for passage in context.passages]
            header = max((self.count(whole) - self.count(text) for whole, text in shown), default=0)
        most = room.tokens - header
        if most < 1:
            raise BudgetError(f"no passage fits: {room}; use a shorter prompt or a model with a larger window", room)
        if most >= self.options.passage_tokens:
            return self
        return replace(self, options=replace(self.options, passage_tokens=most))

    def _tokens(self, prompt: Prompt) -> int:
        """The tokens of a prompt as a chat model reads it."""
        return self.count(prompt.text) + _MESSAGE_TOKENS * (len(prompt.messages) + 1)

    def _values(self, template: Template, values: Mapping[str, Any]) -> dict[str, Any]:
        """What may stand in the fields of a prompt.

        An input may have the name of a field, but never change what is asked or read.
        """
        question = self.asked
        fixed = {
            "question": question,
            self.question_key: question,
            "chat_history": self.chat_history,
            "choices": self._lettered,
            **values,
        }
        aliases: dict[str, Any] = {}
        meant: dict[str, Any] = {}
        for name, others in ALIASES.items():
            if name not in fixed or template.fields.isdisjoint(others):
                continue
            aliases |= dict.fromkeys(others, fixed[name])
            if template.fields.isdisjoint((name, self.question_key) if name == "question" else (name,)):
                # A template that has the alias alone means by it what is asked or read.
                meant |= dict.fromkeys(others, fixed[name])
        return {**aliases, **self._instructions, **self.inputs, **meant, **fixed}

    def shown(self, passage: Passage, number: int) -> str:
        """A passage as it stands in a prompt by itself, under its header."""
        return with_header(passage, self.context_options.header, number)

    def count(self, text: str) -> int:
        """The tokens of a text, by the assembly's counter."""
        return count(text, self.context_options.count_tokens)

    @property
    def asked(self) -> str:
        """The question as a prompt has it, with its choices."""
        return f"{self.question}\n{self._lettered}" if self.choices else self.question

    @property
    def instruction(self) -> str:
        """How to answer."""
        prompts = self.options.prompts
        return prompts.choice_instruction if self.choices else prompts.instruction

    @cached_property
    def _instructions(self) -> dict[str, str]:
        cite_instruction = self.options.prompts.cite_instruction if self._cites else ""
        return {
            "instruction": f"{self.instruction} {cite_instruction}".rstrip(),
            "cite_instruction": cite_instruction,
        }

    @property
    def follows_up(self) -> bool:
        """Whether the question is first made to stand by itself, without the conversation."""
        return bool(self.chat_history) and self.options.condense

    @cached_property
    def collapse_tokens(self) -> int:
        """The most tokens of partial answers in one prompt."""
        rooms = (self.room("collapse", answers=""), self.room("reduce", answers=""))
        most = self.options.collapse_tokens or self.context_options.token_budget or COLLAPSE_TOKENS
        return min([most, *(room.tokens for room in rooms if room is not None)])

    @property
    def _cites(self) -> bool:
        """Whether markers are asked for; a choice is a letter and nothing else."""
        return self.options.cite and not self.choices

    @property
    def _follows_on(self) -> bool:
        """Whether nobody makes the question stand by itself, so that the model has to see what it follows."""
        return bool(self.chat_history) and not self.options.condense

    @cached_property
    def _lettered(self) -> str:
        """The choices, each with its letter."""
        return "\n".join(f"{letter}. {choice}" for letter, choice in zip(ascii_uppercase, self.choices, strict=False))
