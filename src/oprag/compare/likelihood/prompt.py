"""The text that an answer is to continue."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

from oprag.errors import OptionError
from oprag.methods.prompts import TextTemplate
from oprag.options import check_question

__all__ = ["LIKELIHOOD_TEMPLATE", "likelihood_prompt"]

LIKELIHOOD_TEMPLATE = "{context}\n\nQuestion: {question}\nAnswer:"


def likelihood_prompt(
    context: str, question: str, choices: Sequence[str] = (), *, template: str = LIKELIHOOD_TEMPLATE
) -> str:
    r"""The prompt for `answer_likelihood`: a text to be continued, as base models want it.

    A chat model is prompted in the same way, unless a template with its marks is given. Its special tokens count as
    such only where the model was made with `parse_special_tokens=True`.

    Args:
        context: What was retrieved. An empty one makes the prompt without context (closed book), which begins with
            the question: white space around the prompt is cut off.
        question: The question.
        choices: The options of a multiple-choice question. They stand one a line below the question, with their
            letters; what is scored may be the text of the right one or its letter.
        template: The text with the fields {context} and {question}; braces in a value mean nothing.

    Raises:
        QueryError: The question is empty, or no string.
        OptionError: There are more than 26 choices.
        PromptError: The template cannot be used.

    Example:
        >>> print(likelihood_prompt("It rained.", "Was it dry?", ["yes", "no"]))
        It rained.
        <BLANKLINE>
        Question: Was it dry?
        A. yes
        B. no
        Answer:
    """
    check_question(question)
    if len(choices) > len(ascii_uppercase):
        raise OptionError(f"choices must be at most {len(ascii_uppercase)}, got {len(choices)}", choices)
    lines = [question, *(f"{letter}. {choice}" for letter, choice in zip(ascii_uppercase, choices, strict=False))]
    (message,) = TextTemplate(template).messages({"context": context, "question": "\n".join(lines)})
    return message.content if context else message.content.lstrip()
