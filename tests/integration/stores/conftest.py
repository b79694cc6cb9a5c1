"""One corpus, one PostgreSQL and one stand-in for Pinecone for all stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.integration.pinecone_stub import PineconeStub, serve_pinecone
from tests.integration.stores.corpus import Corpus, read_corpus
from tests.integration.stores.place import Place, serve_postgres

Places = Callable[[str], Any]


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return read_corpus()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[str], str]]:
    with serve_postgres() as address:
        yield address


@pytest.fixture(scope="session")
def pinecone() -> Iterator[PineconeStub]:
    with serve_pinecone() as stub:
        yield stub


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Places:
    """A place for a store, which is closed behind the block; servers start for those who ask for them."""

    @contextmanager
    def place(name: str) -> Iterator[Place]:
        with ExitStack() as closing:
            yield Place(
                name,
                tmp_path_factory.mktemp(name),
                # Not before it is called, since this starts the server.
                lambda driver: request.getfixturevalue("postgres")(driver),  # noqa: PLW0108
                lambda: request.getfixturevalue("pinecone").host,
                closing,
            )

    return place
