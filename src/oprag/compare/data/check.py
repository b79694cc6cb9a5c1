"""What holds for every data set of an experiment, whoever made it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from oprag.compare.data.data_set import DataSet, Question, whole_text
from oprag.compare.storable import storable
from oprag.errors import ExperimentError
from oprag.masking import describe

__all__ = ["check_data_set"]


def check_data_set(name: str, data_set: DataSet) -> None:
    """Refuse questions that could not be told apart, or not be asked.

    Args:
        name: The name of the set in the experiment.
        data_set: The set.

    Raises:
        ExperimentError: It has no questions, or one of them is empty, has the id of another one, names a document that
            is not there, or twice, or has answers, choices or evidence that cannot be; or a document is no text, or has
            a name that cannot be written.
    """
    what = f"the data set {describe(name)}"
    if not data_set.questions:
        raise ExperimentError(f"{what} has no questions", data_set)
    documents: Mapping[Any, Any] = data_set.documents
    for document, text in documents.items():
        if not isinstance(document, str) or not document.strip() or storable(document) != document:
            raise ExperimentError(
                f"{what}: {describe(document)} is no name of a document; give it another one", document
            )
        if not _is_text(text):
            raise ExperimentError(f"{what}: the document {describe(document)} must be a text, or a list of pages", text)
    ids: set[str] = set()
    lengths = {document: len(whole_text(text)) for document, text in documents.items()}
    for question in data_set.questions:
        problem = next(_problems(question, lengths), None)
        if problem is None and question.id in ids:
            problem = "another one has the same id"
        if problem is not None:
            raise ExperimentError(f"{what}: the question {describe(question.id)}: {problem}", question)
        ids.add(question.id)


def _problems(question: Question, lengths: Mapping[str, int]) -> Iterator[str]:
    """What is wrong with a question; with the length of each document."""
    text: Any = question.text
    if not isinstance(text, str) or not text.strip():
        yield f"its text must not be empty, got {describe(text)}"
    missing = [document for document in question.documents if document not in lengths]
    if missing:
        yield f"there is no document {describe(missing[0])}"
    if len(set(question.documents)) < len(question.documents):
        yield "it names a document twice"
    for what in ("answers", "choices"):
        texts: Any = getattr(question, what)
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            yield f"its {what} must be a list of texts, got {describe(texts)}"
    if len(question.choices) > len(ascii_uppercase):
        yield f"there can be at most {len(ascii_uppercase)} choices, got {len(question.choices)}"
    right = question.right_choice
    if right is not None and not 0 <= right < len(question.choices):
        yield f"the right choice is number {right} of {len(question.choices)}, counted from 0"
    yield from _misplaced(question, lengths)


def _misplaced(question: Question, lengths: Mapping[str, int]) -> Iterator[str]:
    """What is wrong with the evidence of a question."""
    for document, start, end in question.evidence:
        if document not in question.documents:
            yield f"it has evidence in {describe(document)}, which is none of its documents"
        elif not 0 <= start < end <= lengths[document]:
            length = lengths[document]
            yield f"its evidence must lie in {document!r}, which has {length:,} characters; got {start} to {end}"


def _is_text(text: Any) -> bool:
    return isinstance(text, str) or (isinstance(text, Sequence) and all(isinstance(page, str) for page in text))
