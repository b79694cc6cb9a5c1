"""The command `oprag mcp`: serves the files of a folder to any client of the Model Context Protocol."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from oprag.chunk import counted
from oprag.cli.ask import content_of, index_sources, retriever_of
from oprag.cli.console import print_status
from oprag.cli.options import Indexing, declare, typed_options
from oprag.errors import InputFileError, MissingExtraError, OpragError, OptionError
from oprag.options import ContextOptions

__all__ = ["TOKEN", "mcp"]

_SUFFIXES = (".markdown", ".md", ".pdf", ".rst", ".txt")
_FOLDER = f"A folder; its files named {', '.join(_SUFFIXES)} are served."
TOKEN = "OPRAG_MCP_TOKEN"  # noqa: S105 - the name of a variable
_SERVER = "HTTP"


@typed_options(options=ContextOptions, indexed=Indexing)
def mcp(
    *,
    options: dict[str, Any],
    indexed: dict[str, Any],
    folder: Path = typer.Argument(help=_FOLDER),
    http: bool = declare("Serve over HTTP on this machine instead of stdio.", "--http", default=False, panel=_SERVER),
    port: int = declare("The port.", default=8_765, min=1, max=65_535, panel=_SERVER),
) -> None:
    """Serve the files of FOLDER to an MCP client, such as an editor or a chat application.

    The client searches and reads them in the order of each file. With --http, it sends the token that is printed, or
    that of the environment variable OPRAG_MCP_TOKEN, as a bearer token.
    """
    try:
        from oprag.agents.tools import DEFAULT_K
        from oprag.mcp.server import server_of
    except ImportError as error:
        raise MissingExtraError("oprag mcp", "mcp") from error
    indexing = Indexing(**indexed)
    context_options = ContextOptions(**{"k": DEFAULT_K, "token_budget": 4_000, **options})
    names = _files(folder)
    print_status(f"Reading {counted(len(names), 'file')} of {folder}.")

    def make(report: Callable[[int, int], None]) -> Any:
        try:
            index = index_sources(_sources(folder, names), indexing, report)
        except OpragError as error:
            # Each call raises it, too; but the user who typed the command reads this.
            print_status(f"Error: {error}", "red")
            raise
        return retriever_of(index, context_options, indexing)

    server = server_of(make, name="oprag", token_budget=context_options.token_budget or 4_000)
    if not http:
        server.run()
        return
    from oprag.mcp.http import HOST, PATH, serve

    token = os.environ.get(TOKEN) or secrets.token_urlsafe()
    # Nothing is masked: this is how the user learns the token.
    typer.echo(f"http://{HOST}:{port}{PATH}\nAuthorization: Bearer {token}", err=True)
    serve(server, port, token)


def _sources(folder: Path, names: Sequence[str]) -> dict[str, str | list[str]]:
    """The texts of the files that can be read."""
    sources = {}
    for name in names:
        try:
            sources[name] = content_of(str(folder / name))
        except InputFileError as error:
            print_status(f"Skipped: {error}", "yellow")
    if not sources:
        raise InputFileError(f"no file of {folder} could be read", str(folder))
    print_status(f"Serving {counted(len(sources), 'file')} of {folder}.")
    return sources


def _files(folder: Path) -> list[str]:
    """The names of the files in a folder and its subfolders, relative to it; hidden ones and links are left out."""
    if not folder.is_dir():
        raise OptionError(f"{folder} is not a folder", str(folder))
    names = []
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        paths = (Path(parent, name) for name in sorted(files) if not name.startswith("."))
        names += [
            path.relative_to(folder).as_posix()
            for path in paths
            if path.suffix.lower() in _SUFFIXES and not path.is_symlink()
        ]
    if not names:
        raise InputFileError(f"{folder} has no files named {', '.join(_SUFFIXES)}", str(folder))
    return names
