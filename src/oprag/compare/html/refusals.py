"""What kind of questions Self-Route refused, as a model sorts them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from oprag.compare.db.reader import ResultsReader
from oprag.compare.html.material import Material
from oprag.compare.html.parts import Heading, Part, Table, Text
from oprag.compare.html.words import counted, share
from oprag.compare.providers.model import Model, ModelSpec
from oprag.methods.model_calls import Message, Prompt

__all__ = ["KINDS", "classified", "classify", "opened_model", "refused_questions"]

KINDS = {
    "A": "multi-step",
    "B": "general",
    "C": "long or complex",
    "D": "implicit",
    "E": "other",
}
"""The kinds of questions that retrieval fails on, after Li et al. 2024."""

_UNREADABLE, _FAILED = "unreadable", "call failed"
_LONGEST = 4_000  # characters of a question
# Alone, before a mark, or before its own kind: the first letter of a sentence is none.
_LETTER = re.compile(
    r"[\W_]*(?:(?:answer|kind|category)\b[\W_]*)?([A-E])(?:[\W_]*\Z|[^\w\s]|\s+(?:multi|general|long|implicit|other))",
    re.IGNORECASE,
)
_PROMPT = """\
A question could not be answered from the passages that a search found in a document. Say why, by its kind:

A. multi-step: it takes one result to look for the next, as in "What nationality is the performer of song X?"
B. general: it does not say what to look for, as in "What does the group think about X?"
C. long or complex: it is so long or complex that a search does not understand it.
D. implicit: the answer is nowhere said, and takes an understanding of the whole document.
E. other: none of these.

Question: {question}

Reply with one letter, A, B, C, D or E, and nothing else."""


def refused_questions(material: Material) -> list[str]:
    """The questions that some cell of `self_route` did not answer from the retrieved chunks, each once."""
    with ResultsReader(material.path, material.results.experiment) as reader:
        refused = {answer.question for answer in reader.answers() if answer.route == "long_context"}
        return [reader.questions[question].question for question in sorted(refused)]


def opened_model(given: Any) -> Model | None:
    """A model that sorts questions; None for None.

    Args:
        given: A `Model`, a `ModelSpec`, or what it takes.

    Raises:
        ExperimentError: There is no such model.
        MissingExtraError: What it needs is not installed.
    """
    if given is None or isinstance(given, Model):
        return given
    if isinstance(given, ModelSpec):
        return given.open()
    # Its replies are not kept, so whatever it is called is good enough.
    return ModelSpec(given, given if isinstance(given, str) else type(given).__name__).open()


def classify(questions: Sequence[str], model: Model, watch: Callable[[int], None] = lambda _: None) -> Counter[str]:
    """How many questions are of each kind, as a model says; replies that name none, and failed calls, are counted.

    The kinds are those of Li et al. 2024 (arXiv 2407.16833); the prompt is our own.

    Args:
        questions: The questions.
        model: The model.
        watch: Told how many are sorted.
    """
    counts: Counter[str] = Counter()
    for number, question in enumerate(questions, 1):
        text = _PROMPT.replace("{question}", question[:_LONGEST])
        completion = model.complete(Prompt((Message("user", text),), "classify"))
        found = _LETTER.match(completion.text)
        if completion.error is not None:
            counts[_FAILED] += 1
        else:
            counts[_UNREADABLE if found is None else KINDS[found[1].upper()]] += 1
        watch(number)
    return counts


def classified(questions: Sequence[str], model: Model, watch: Callable[[int], None]) -> list[Part]:
    """Refused questions by their kind.

    Args:
        questions: The questions.
        model: The model.
        watch: Told how many are sorted.
    """
    heading = Heading("What kind of questions the first step refused")
    if not questions:
        return [heading, Text("None: every answer came from the retrieved chunks.")]
    counts = classify(questions, model, watch)
    rows = [
        (kind, f"{counts[kind]:,}", share(counts[kind] / len(questions)))
        for kind in (*KINDS.values(), _UNREADABLE, _FAILED)
    ]
    note = (
        f"{counted(len(questions), 'question')} that at least one setting refused, sorted by "
        f"{model.name!r} from the question alone. It may be wrong, and was asked for this report only; what it "
        "replied is not kept. Replies that name no kind are unreadable."
    )
    return [heading, Table("Refused questions by kind", ("kind", "questions", "share"), rows), Text(note, quiet=True)]
