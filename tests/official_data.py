"""Small data sets in the layouts of their publishers, with invented content, at the places that experiments name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from oprag.compare import DataSet, Question
from tests.compare.data.writing import write, write_csv, write_lines
from tests.compare.helpers import keepers
from tests.helpers import WORDS
from tests.pdfs import pdf

__all__ = ["write_official"]

_QUESTIONS = 2
_LINES_OF_A_PAGE = 40


def write_official(path: Path, format_name: str, seed: int, **options: Any) -> None:
    """Write a data set where an experiment reads it; another one for each seed."""
    data = keepers(documents=1 + seed % 2, questions=_QUESTIONS, words=700 + 50 * seed)
    _WRITERS[format_name](path, data, options)


def _infinitebench(path: Path, data: DataSet, table: Mapping[str, Any]) -> None:
    rows = [
        {
            "id": number,
            "context": _text(data, question),
            "input": question.text,
            "answer": [_answer(question)],
            "options": _choices(question, number) if "choice" in path.name else [],
        }
        for number, question in enumerate(data.questions)
    ]
    write_lines(path, *rows)


def _longbench(path: Path, data: DataSet, table: Mapping[str, Any]) -> None:
    rows = [
        {
            "input": question.text,
            "context": _text(data, question),
            "answers": [_answer(question)],
            "length": 700,
            "dataset": path.stem,
            "language": "en",
            "all_classes": None,
            "_id": f"{path.stem}{number}",
        }
        for number, question in enumerate(data.questions)
    ]
    write_lines(path, *rows)


def _quality(path: Path, data: DataSet, table: Mapping[str, Any]) -> None:
    rows = []
    for name, article in data.documents.items():
        questions = [question for question in data.questions if question.documents == (name,)]
        rows.append(
            {
                "article_id": name,
                "set_unique_id": f"{name}_WRITER",
                "source": "Shelf",
                "title": name,
                "article": article,
                "questions": [
                    {
                        "question": question.text,
                        "question_unique_id": f"{name}_{number}",
                        "options": _choices(question, number),
                        "gold_label": _choices(question, number).index(_answer(question)) + 1,
                        "difficult": number % 2,
                    }
                    for number, question in enumerate(questions)
                ],
            }
        )
    write_lines(path, *rows)


def _narrativeqa(path: Path, data: DataSet, table: Mapping[str, Any]) -> None:
    head = ("document_id", "set", "kind", "wiki_title")
    # A story of another part of the set, which need not be there.
    listed = [(name, "test", "gutenberg", name) for name in data.documents]
    write_csv(path / "documents.csv", head, *listed, ("elsewhere", "train", "movie", ""))
    columns = ("document_id", "set", "question", "answer1", "answer2")
    rows = [
        (*question.documents, "test", question.text, _answer(question), f"It is {_answer(question)}")
        for question in data.questions
    ]
    write_csv(path / "qaps.csv", columns, *rows, ("elsewhere", "train", "Who?", "Ada", "Ada"))
    for name, text in data.documents.items():
        write(path / "tmp" / f"{name}.content", str(text))


def _kg_rag(path: Path, data: DataSet, table: Mapping[str, Any]) -> None:
    head = ("Question", "Source Docs", "Question Type", "Source Chunk Type", "Answer")
    rows = [
        (question.text, f"*{name}*", "Single-Doc RAG", "Text", f"{_answer(question)}\n\nSOURCE(S): {name}.pdf")
        for question in data.questions
        for name in question.documents
    ]
    write_csv(path, head, *rows)
    for name, text in data.documents.items():
        write(path.parent / "docs" / f"{name}.pdf", _pdf(str(text)))


def _oprag(path: Path, data: DataSet, table: Mapping[str, Any]) -> None:
    write_lines(path, *({"question": one.text, "answer": _answer(one), "document": "*"} for one in data.questions))
    for name, text in data.documents.items():
        write(path.parent / Path(table["documents"]).name / f"{name}.pdf", _pdf(str(text)))


def _medqa(path: Path, data: DataSet, table: Mapping[str, Any]) -> None:
    rows = [
        {
            "question": question.text,
            "answer": _answer(question),
            "options": dict(zip("ABCD", _choices(question, number), strict=True)),
            "meta_info": "step1",
            "answer_idx": "ABCD"[_choices(question, number).index(_answer(question))],
        }
        for number, question in enumerate(data.questions)
    ]
    write_lines(path, *rows)
    folder = table["documents"]
    for name, text in data.documents.items():
        write(folder / f"{name}.txt", str(text))


def _text(data: DataSet, question: Question) -> str:
    return str(data.documents[question.documents[0]])


def _answer(question: Question) -> str:
    return question.answers[0]


def _choices(question: Question, number: int) -> list[str]:
    """The right answer and three others, at another place for each question."""
    others = [word.title() for word in WORDS if word.title() != _answer(question)][:3]
    return [*others[: number % 4], _answer(question), *others[number % 4 :]]


def _pdf(text: str) -> bytes:
    lines = [" ".join(words) for words in _parts(text.split(), 10)]
    return pdf(*("\n".join(page) for page in _parts(lines, _LINES_OF_A_PAGE)))


def _parts(things: list[str], size: int) -> list[list[str]]:
    return [things[start : start + size] for start in range(0, len(things), size)]


_WRITERS: dict[str, Callable[[Path, DataSet, Mapping[str, Any]], None]] = {
    "infinitebench": _infinitebench,
    "kg_rag": _kg_rag,
    "longbench": _longbench,
    "medqa": _medqa,
    "narrativeqa": _narrativeqa,
    "oprag": _oprag,
    "quality": _quality,
}
