"""Splitting and embedding for the command line, with a progress bar when it takes long."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from oprag.cli.show import error_console
from oprag.index import DocumentIndex
from oprag.local import LocalEmbedder

__all__ = ["embed_sources", "local_embedder"]

_PATIENCE = 1.0  # seconds without a progress bar


@cache
def local_embedder() -> LocalEmbedder:
    """The embedded default, loaded once.

    Raises:
        MissingExtraError: The extra `local` is not installed.
    """
    return LocalEmbedder()


def embed_sources(sources: Mapping[str, str], size: int, overlap: int) -> DocumentIndex:
    """An index over these texts."""
    embedder = local_embedder()
    with _LateProgress() as progress:
        return DocumentIndex.from_texts(
            sources, embedder, embedder.tokenizer, size=size, overlap=overlap, progress=progress.update
        )


class _LateProgress:
    """A progress bar on standard error that shows up only when the work takes longer than a second."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._bar = Progress(
            TextColumn("embedding"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("chunks"),
            TimeRemainingColumn(),
            console=error_console(),
            transient=True,
        )
        self._task = self._bar.add_task("embedding", total=None)

    def __enter__(self) -> _LateProgress:
        return self

    def __exit__(self, *_: object) -> None:
        # One that was never shown would still print an empty line.
        if self._bar.live.is_started:
            self._bar.stop()

    def update(self, done: int, total: int) -> None:
        """Show how far it is."""
        if time.monotonic() - self._started > _PATIENCE and done < total:
            self._bar.start()
        self._bar.update(self._task, completed=done, total=total)
