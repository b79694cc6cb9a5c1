"""Reading question sets in their published formats."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

from oprag._internal.masking import describe

# If pydantic is missing, this import raises the error that names the extra to install.
from oprag.compare import validation  # noqa: F401
from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.data_set import DataSet, Question
from oprag.compare.data.files import stem
from oprag.compare.data.formats import FORMATS, read_questions
from oprag.errors import InputFileError, OptionError
from oprag.options import check_choice, check_count, check_names, check_text

__all__ = ["format_options", "read_data"]


def format_options(format: str) -> tuple[str, ...]:  # noqa: A002  # the usual name
    """Options of a format, including `documents` if its documents are separate from its questions.

    Raises:
        OptionError: The format is unknown.
    """
    check_choice("format", format, FORMATS)
    _, *options = inspect.signature(FORMATS[format].lines).parameters
    return (*options, *(["documents"] if FORMATS[format].documents else []))


def read_data(
    path: str | os.PathLike[str],
    format: str = "oprag",  # noqa: A002  # the usual name
    *,
    name: str | None = None,
    documents: str | os.PathLike[str] | None = None,
    within: str | os.PathLike[str] | None = None,
    size: int | None = None,
    source: str | None = None,
    **options: Any,
) -> DataSet:
    """Read a question set and its documents from a file or folder.

    If any record is invalid, nothing is returned and the error has its file and line. Files may be gzip-compressed.

    Args:
        path: File of questions, or the folder that contains it.
        format: A format listed in `docs/reference/data_formats.md`, which also describes the options of each format.
        name: Name of the data set; the name of the file or folder by default.
        documents: Folder or file of the documents, for formats that keep them separate from the questions.
        within: Folder that must contain all files, after following links, and where none is hidden; None for no
            restriction.
        size: Published number of questions. If the data is missing, a plan can then still count the answers.
        source: Where to get the data, or the command that gets it; shown while the data is missing.
        options: Options of this format.

    Raises:
        OptionError: The format, an option or its value is unknown or invalid.
        InputFileError: A file or folder is missing, cannot be read, or is outside `within`.
        DataError: Records are invalid; the message has the location of the first one.
        MissingExtraError: A document is a PDF file, and the package to read it is not installed.
    """
    allowed = format_options(format)
    check_text("name", name, optional=True)
    place = _path("path", path)
    builder = DataSetBuilder(place, None if within is None else _path("within", within))
    builder.check_inside(place)
    if documents is not None:
        options["documents"] = _path("documents", documents)
        builder.check_inside(options["documents"])
    check_names(options, allowed)
    check_count("size", size)
    if not place.exists():
        missing = f"no such file or folder: {place}{f'; get it: {source}' if source else ''}"
        if size is None:
            raise InputFileError(missing, str(place))
        placeholders = tuple(Question(id=str(number), text=str(number), documents=()) for number in range(size))
        return DataSet(name=name or _name(place), documents={}, questions=placeholders, missing=missing)
    read_questions(builder, format, **options)
    return builder.data_set(name or _name(place))


def _path(option: str, path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in str(path):
        raise OptionError(f"{option} must be the path of a file or folder, got {describe(path)}", path)
    place = Path(path)
    try:
        place.exists()
    except OSError as error:
        raise InputFileError(f"cannot read {describe(place)}: {error.strerror}", str(path)) from error
    return place


def _name(path: Path) -> str:
    return path.resolve().name if path.is_dir() else stem(path)
