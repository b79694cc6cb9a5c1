"""The command `oprag check`: checks whether chunks in JSON files have positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from oprag._internal.masking import describe
from oprag._internal.text_table import safe
from oprag.cli.console import EXIT_PROBLEMS_FOUND, console, echo_json
from oprag.cli.options import AS_JSON, declare, typed_options
from oprag.errors import DataError, InputFileError
from oprag.options import ContextOptions
from oprag.positions.check_report import PositionCheck
from oprag.stores.adapter import StoredChunk

__all__ = ["check"]

_KEYS = ("source_key", "position_key")
_ADVICE = "oprag check reads chunks as JSON or JSON lines; check a store or an index in Python: check_positions(store)"
_OTHERS = [field.name for field in fields(ContextOptions) if field.name not in _KEYS]


@typed_options(keys=ContextOptions, without=_OTHERS)
def check(
    *,
    keys: dict[str, Any],
    paths: list[str] = typer.Argument(
        help="Files with chunks as JSON or JSON lines: text or page_content, and metadata."
    ),
    read_source: str | None = declare(
        "A folder with the full texts of the sources, to locate chunks without a position."
    ),
    max_chunks: int = declare("Maximum number of chunks to read.", default=20_000, min=1),
    as_json: bool = AS_JSON,
) -> None:
    """Check whether the chunks in PATHS can be put in source order, and print what to do if not.

    Changes nothing and embeds nothing. Exits with 3 if any source has a problem. Vector stores and indexes are checked
    in Python, with check_positions(store).
    """
    options = ContextOptions(**keys)
    checks = {path: _checked(Path(path), options, read_source, max_chunks) for path in dict.fromkeys(paths)}
    if as_json:
        echo_json({"checks": [{"path": path, **found.to_dict()} for path, found in checks.items()]})
    for path, found in {} if as_json else checks.items():
        if len(checks) > 1:
            console().print(f"── {safe(path)}", style="bold")
        console().print(Text(str(found)))
    if not all(found.ok for found in checks.values()):
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _checked(path: Path, options: ContextOptions, read_source: str | None, max_chunks: int) -> PositionCheck:
    # Imported here to keep the other commands fast to start.
    from oprag.positions.check import Checked, check_listings
    from oprag.positions.source_reader import as_reader
    from oprag.positions.suggestions import LANGCHAIN
    from oprag.stores.listing import chunks_of_rows

    return check_listings(
        [Checked("chunks", chunks_of_rows(_rows(path)))],
        options,
        LANGCHAIN,
        max_chunks=max_chunks,
        read_source=as_reader(read_source),
    )


def _rows(path: Path) -> list[StoredChunk]:
    from oprag.compare.data.files import json_records
    from oprag.compare.data.read import DataSetBuilder

    if path.is_dir():
        raise InputFileError(f"{path} is a folder; {_ADVICE}", str(path))
    builder = DataSetBuilder(path)
    rows = []
    try:
        for record in json_records(builder, path, with_nan=True):
            with builder.at(record.place):
                rows.append(_row(record.fields))
    except DataError as error:
        raise DataError(f"{error}\n{_ADVICE}", str(path)) from error
    return rows


def _row(chunk: Mapping[str, Any]) -> StoredChunk:
    from oprag.compare.data.files import RecordError

    text, metadata = chunk.get("text", chunk.get("page_content")), chunk.get("metadata")
    if not isinstance(text, str):
        raise RecordError(f"text or page_content must be a string, got {describe(text)}")
    if not isinstance(metadata, dict | None):
        raise RecordError(f"metadata must be an object, got {describe(metadata)}")
    return StoredChunk(str(chunk.get("id") or ""), text, metadata or {})
