"""Numbers the chunks of each source at ingestion (`PositionKind.STAMPED`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from oprag._internal.masking import describe, shown
from oprag._internal.warn import warn
from oprag.chunk import Chunk
from oprag.errors import MissingSourceError, OptionError, PositionWarning
from oprag.options import SourceKey
from oprag.positions.fields import BY_STORE_NUMBERING, NUMBERING_FIELD, PAGE_NUMBER_FIELDS, STAMP_FIELD
from oprag.positions.source_names import source_name, source_of, warn_about_key
from oprag.positions.values import ordinal

__all__ = ["given_source", "numbering_of", "stamps"]

_MAX_NAME_LENGTH = 50  # characters in a warning


def stamps(
    chunks: Sequence[Chunk], source: str | os.PathLike[str] | None, source_key: SourceKey | None
) -> list[dict[str, Any]]:
    """Return the metadata to add to each chunk."""
    source = given_source(source)
    warn_about_key("source_key", source_key, chunks)
    members: dict[str, list[int]] = {}
    added: list[dict[str, Any]] = []
    for index, chunk in enumerate(chunks):
        name = source_of(chunk, source_key, source)
        if name is None:
            raise MissingSourceError(
                f"chunk {index} does not name its source (metadata keys: {chunk.keys_text()}); name it with source=...",
                chunk,
            )
        # Without the name in its metadata, the chunk would be assigned to another source at retrieval.
        named = {"source": name} if name == source and source_of(chunk, source_key) != name else {}
        group = members.setdefault(name, [])
        added.append({**named, STAMP_FIELD: len(group)})
        group.append(index)
    for name, group in members.items():
        _warn_about_pages(name, [chunks[index] for index in group])
        numbering = numbering_of([chunks[index].text for index in group])
        for index in group:
            added[index][NUMBERING_FIELD] = numbering
    return added


def _warn_about_pages(source: str, chunks: Sequence[Chunk]) -> None:
    """Warn if page numbers decrease: several files share one source name, or the chunks are not in order."""
    for field in PAGE_NUMBER_FIELDS:
        pages = [page for chunk in chunks if (page := ordinal(chunk.metadata.get(field))) is not None]
        if pages != sorted(pages):
            warn(
                f"page numbers decrease in {shown(source, _MAX_NAME_LENGTH, repr, end=True)}, so the chunks of several "
                "files may be mixed; name each file with source_key=..., or sort the chunks before stamping",
                PositionWarning,
                cause="pages that go back",
            )
            return


def numbering_of(texts: Sequence[str], *, assumed: bool = False) -> str:
    """Return an id for the numbering of these texts: a hash that is equal in every process."""
    # Imported only when stamping: it takes an eighth of the time of `import oprag`.
    import hashlib

    digest = hashlib.blake2b(digest_size=6)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % len(data) + data)
    # The letter is needed: some stores return strings such as "123" or "12e5" as numbers.
    return f"{BY_STORE_NUMBERING if assumed else 'n'}{digest.hexdigest()}"


def given_source(source: Any) -> str | None:
    """Validate a source name given by the caller."""
    if source is None:
        return None
    name = source_name(source) if isinstance(source, str | os.PathLike) else None
    if name is None:
        raise OptionError(f"source must be a non-empty string, a path or None, got {describe(source)}", source)
    return name
