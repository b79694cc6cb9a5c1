"""The command `oprag check`: checks whether chunks in files and saved indexes have positions."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from oprag.cli.console import EXIT_PROBLEMS_FOUND, console, echo_json
from oprag.cli.options import AsJson, TypedOptions, typed_options
from oprag.masking import safe
from oprag.options import ContextOptions
from oprag.positions.check_report import PositionCheck

__all__ = ["check"]

_KEYS = ("source_key", "position_key")
_OTHERS = [field.name for field in fields(ContextOptions) if field.name not in _KEYS]


@typed_options("keys", ContextOptions, without=_OTHERS)
def check(
    keys: TypedOptions,
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Documents as JSON or JSON lines, a saved DocumentIndex, or a Chroma, LanceDB or LlamaIndex folder."
        ),
    ],
    collection: Annotated[
        str | None, typer.Option(help="The collection of a Chroma folder, or the table of a LanceDB folder.")
    ] = None,
    read_source: Annotated[
        str | None,
        typer.Option(help="A folder with the full texts of the sources, to locate chunks without a position."),
    ] = None,
    max_chunks: Annotated[int, typer.Option(min=1, help="Maximum number of chunks to read.")] = 20_000,
    as_json: AsJson = False,
) -> None:
    """Check whether the chunks in PATHS can be put in source order, and print what to do if not.

    Changes nothing and embeds nothing. Exits with 3 if any source has a problem.
    """
    options = ContextOptions(**keys.keywords())
    checks = {path: _checked(Path(path), collection, options, read_source, max_chunks) for path in dict.fromkeys(paths)}
    if as_json:
        echo_json({"checks": [{"path": path, **found.to_dict()} for path, found in checks.items()]})
    for path, found in {} if as_json else checks.items():
        if len(checks) > 1:
            console().print(f"── {safe(path)}", style="bold")
        console().print(Text(str(found)))
    if not all(found.ok for found in checks.values()):
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _checked(
    path: Path, collection: str | None, options: ContextOptions, read_source: str | None, max_chunks: int
) -> PositionCheck:
    # Imported here to keep the other commands fast to start.
    from oprag.cli.saved_chunks import open_saved
    from oprag.files.source_reader import as_reader
    from oprag.positions.check import Checked, check_listings
    from oprag.positions.remedies import LANGCHAIN, LLAMA_INDEX
    from oprag.stores.listing import chunks_of_rows
    from oprag.stores.llama_index_nodes import NODE_FIELD

    with open_saved(path, collection, max_chunks) as saved:
        rows = iter(saved.rows)
        first = next(rows, None)
        of_nodes = first is not None and (first.node is not None or NODE_FIELD in first.metadata)
        every = chunks_of_rows(rows if first is None else chain([first], rows))
        remedies = replace(
            LLAMA_INDEX if of_nodes else LANGCHAIN,
            writable=saved.adapter is not None and saved.adapter(None).writable,
            deletable=saved.adapter is not None,
        )
        return check_listings(
            [Checked(saved.name, every, saved.in_insertion_order)],
            options,
            remedies,
            max_chunks=max_chunks,
            read_source=as_reader(read_source),
        )
