"""Reading question sets, each in the format in which it is published."""

from __future__ import annotations

import inspect
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from oprag.compare.data.builder import DataSetBuilder
from oprag.compare.data.data_set import DataSet
from oprag.compare.data.files import stem
from oprag.errors import InputFileError, OptionError
from oprag.masking import describe
from oprag.options import check_choice, check_names, check_text

__all__ = ["FORMATS", "format_options", "read_data"]

FORMATS = (
    *("oprag", "infinitebench", "kg_rag", "llama_rag_dataset", "longbench", "medqa", "narrativeqa", "qmsum"),
    "quality",
)
"""The names of all formats, our own first; each is a module of `oprag.compare.data.formats`."""

_FOLDERS = frozenset(("oprag", "llama_rag_dataset", "narrativeqa", "qmsum"))


def format_options(format: str) -> tuple[str, ...]:  # noqa: A002  # what everyone calls it
    """The options of a format, `documents` among them if its documents are apart from its questions.

    Raises:
        OptionError: The format is unknown.
    """
    check_choice("format", format, FORMATS)
    return tuple(option for option in inspect.signature(_reader(format)).parameters if option != "builder")


def read_data(
    path: str | os.PathLike[str],
    format: str = "oprag",  # noqa: A002  # what everyone calls it
    *,
    name: str | None = None,
    documents: str | os.PathLike[str] | None = None,
    within: str | os.PathLike[str] | None = None,
    **options: Any,
) -> DataSet:
    """Read a question set from a file or folder, with its documents.

    All records are read, or none: an invalid one is reported with its file and line. Files may be compressed with gzip.

    Args:
        path: The file of questions, or the folder that has it.
        format: One of those in `docs/data_formats.md`, which has their options.
        name: Name of the set; by default that of the file or folder.
        documents: The folder or file of the documents, for formats that keep them apart.
        within: The folder that all files must be in, links followed and without hidden ones; None for any.
        options: Options of this format.

    Raises:
        OptionError: The format, an option or its value is unknown or invalid.
        InputFileError: A file or folder is missing, cannot be read, or is outside `within`.
        DataError: Records are invalid; the message has the first five places.
        MissingExtraError: A document is a PDF file, and the package that reads it is not installed.
    """
    allowed = format_options(format)
    check_text("name", name, optional=True)
    place = _path("path", path)
    if documents is not None:
        options["documents"] = _path("documents", documents)
    check_names(options, allowed)
    if not place.exists():
        raise InputFileError(f"there is no file or folder {place}", str(place))
    if place.is_dir() and format not in _FOLDERS:
        raise InputFileError(f"{place} is a folder; the format {format!r} is read from a file of questions", str(place))
    builder = DataSetBuilder(place, None if within is None else _path("within", within))
    _reader(format)(builder, **options)
    return builder.data_set(name or _name(place))


def _reader(format: str) -> Any:  # noqa: A002
    return import_module(f"oprag.compare.data.formats.{format}").read


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
