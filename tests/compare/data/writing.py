"""Small question sets, written by the tests that read them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from oprag.compare import DataSet, Question, read_data
from oprag.errors import DataError


def write_lines(path: Path, *rows: Mapping[str, Any] | str) -> Path:
    """A file of JSON lines; a string is a line as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows]
    return write(path, "".join(f"{line}\n" for line in lines))


def write_csv(path: Path, head: Sequence[str], *rows: Sequence[str]) -> Path:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([head, *rows])
    return write(path, out.getvalue())


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def compressed(path: Path) -> Path:
    """The file, with `.gz` behind its name, in its place."""
    target = path.with_name(path.name + ".gz")
    target.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    path.unlink()
    return target


def refused(path: Path, format: str = "oprag", **options: Any) -> str:  # noqa: A002  # as in `read_data`
    """What reading it is refused with."""
    with pytest.raises(DataError) as caught:
        read_data(path, format, **options)
    assert caught.value.value == str(path)
    return str(caught.value)


def only(data: DataSet) -> Question:
    (question,) = data.questions
    return question


def text_of(data: DataSet, name: str) -> str:
    text = data.documents[name]
    assert isinstance(text, str)
    return text


def evidence_texts(data: DataSet, question: Question) -> list[str]:
    return [text_of(data, part.document)[part.start : part.end] for part in question.evidence]
