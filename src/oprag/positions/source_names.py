"""Reads the name of a chunk's source, and pages or times contained in source names."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any, NamedTuple

from oprag._internal.masking import shown
from oprag._internal.warn import warn
from oprag.chunk import Chunk, finite
from oprag.errors import PositionWarning, SourceWarning
from oprag.options import SourceKey
from oprag.positions.fields import ID_FIELDS, NAME_FIELDS, PLACEHOLDERS, SOURCE_FIELDS, with_usual_fields
from oprag.positions.values import TOO_LARGE, whole

__all__ = [
    "field_of",
    "names_of_parts",
    "names_spelled_differently",
    "numbers_named",
    "source_of",
    "source_parts",
    "warn_about_key",
]


_FILES = ("file_path", "file_name", "filename")
_MAX_PAGE_DIGITS = 6  # a longer number is an id
_MAX_PART_LENGTH = 2_000  # a longer name, such as a data: URL, does not end with a page or time
_MAX_KEY_LENGTH = 40  # characters of a metadata key in a warning
_MAX_STORED = 2**63  # stores have 64-bit integers

# A time in a URL, as YoutubeLoader writes it: "&t=30s"; also "#t=30", and YouTube's "?t=30".
_TIME = r"([?&#])t=([0-9]+)(s?)(&|(?=#)|$)"
_YOUTUBE = r"//([\w-]+\.)*(youtube\.com|youtube-nocookie\.com|youtu\.be)/"

# Ends of names that distinguish parts of one source: a fragment of a URL or path, a page or time in a query, a number
# after a document's extension, or the Unix time of a Slack message. Other numbers are ids and versions.
_PART = (
    r"(?:(?P<fragment>(?<=\S)#(?![/!#])\S+)"
    r"|[?&](?:page=[0-9]+|t=[0-9hm]+s)"
    r"|(?<=\.)(?i:pdf|docx?|pptx?|odt|rtf|epub|html?|md|rst|tex|txt|vtt|srt)[-_:, (]+[A-Za-z]*[-_:. ]?[0-9]+\)?"
    r"|(?P<time>(?<![0-9])1[0-9]{9}\.[0-9]{6}|(?<=/p)1[0-9]{15}))$"
)


class SourceParts(NamedTuple):
    """The source name in the metadata, and the page or time next to it."""

    name: str | None
    page: int | None = None  # if `source` is a page number and another key contains the file path
    seconds: int | None = None  # if the name is a URL that ends with a time


def source_of(chunk: Chunk, source_key: SourceKey | None = None, fallback: str | None = None) -> str | None:
    """Return the name of the chunk's source, or None: by the key, as set, as named in metadata, else by an id."""
    if source_key is not None:
        given = source_key(chunk) if callable(source_key) else first_name(chunk.metadata, source_key)
        if (name := source_name(given)) is not None:
            return name
    if chunk.source is not None and (name := source_name(chunk.source)) is not None:
        return name
    metadata = with_usual_fields(chunk.metadata)
    return source_parts(metadata).name or fallback or first_name(metadata, ID_FIELDS) or source_name(chunk.document_id)


def field_of(chunks: Sequence[Chunk], source_key: SourceKey | None) -> str:
    """Return the metadata key that contains the source name in all of these chunks; empty if no key does."""
    named = () if source_key is None or callable(source_key) else source_key
    fields: tuple[str, ...] = (*([named] if isinstance(named, str) else named), *SOURCE_FIELDS)
    for field in fields:
        if all(source_name(chunk.metadata.get(field)) == chunk.source for chunk in chunks):
            return field
    return ID_FIELDS[0] if all(chunk.document_id == chunk.source for chunk in chunks) else ""


def source_parts(metadata: Mapping[str, Any]) -> SourceParts:
    """Return the source named by the usual metadata keys, and the page or time that their values contain."""
    name = first_name(metadata, NAME_FIELDS, besides=PLACEHOLDERS)
    if name is None:
        return SourceParts(None)
    if len(name) <= _MAX_PAGE_DIGITS and (page := whole(name)) is not None:
        file = first_name(metadata, _FILES)
        if file is not None and whole(file) is None and source_name(metadata.get("source")) == name:
            return SourceParts(file, page=page)
    return _without_time(name) if "t=" in name else SourceParts(name)


def _without_time(name: str) -> SourceParts:
    """Remove a time from a URL. A bare `?t=30` is a time only on YouTube; elsewhere it can be a topic number."""
    at_youtube = bool(re.search(_YOUTUBE, name))
    for match in re.finditer(_TIME, name):
        mark, time, unit, after = match.groups()
        seconds = whole(time)
        if (at_youtube or unit or mark == "#") and seconds is not None:
            return SourceParts(name[: match.start()] + (mark if after else "") + name[match.end() :], seconds=seconds)
    return SourceParts(name)


def names_of_parts(names: Iterable[str]) -> list[str]:
    """Return the names that look like parts of one source: at least three that differ only in a part at their end."""
    stems: dict[str, list[str]] = {}
    for name in names:
        match = re.search(_PART, name) if len(name) <= _MAX_PART_LENGTH else None
        # Outside URLs and paths, "#" is a number sign.
        if match is None or (match["fragment"] and not re.search(r"[/\\.]", name[: match.start()])):
            continue
        # The names of messages differ in their authors, too.
        stems.setdefault("" if match["time"] else name[: match.start()], []).append(name)
    return [name for alike in stems.values() if len(alike) >= 3 for name in alike]


def names_spelled_differently(names: Iterable[str]) -> list[str]:
    """Return the names that differ only in the kind of their slashes, in `./`, or in the form of Unicode."""
    spelled: dict[str, list[str]] = {}
    for name in names:
        spelled.setdefault(_spelling(name), []).append(name)
    return [name for alike in spelled.values() if len(alike) > 1 for name in alike]


def _spelling(name: str) -> str:
    if "\\" in name or "./" in name:
        name = re.sub(r"(^|/)(\./)+", r"\1", name.replace("\\", "/"))
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def warn_about_key(option: str, key: Any, chunks: Sequence[Chunk]) -> bool:
    """Warn if no chunk has a metadata key that the caller named; return whether it warned."""
    if key is None or callable(key) or not chunks:
        return False
    names = (key,) if isinstance(key, str) else key
    missing = [name for name in names if not any(name in chunk.metadata for chunk in chunks)]
    by_source = option == "source_key"
    if not missing or (by_source and len(missing) < len(names)):
        return False
    import difflib

    name = missing[0]
    seen = sorted({str(key) for chunk in chunks for key in chunk.metadata})
    close = difflib.get_close_matches(name, seen, n=1)
    effect = "so the source is read from the usual keys" if by_source else "so no position is known"
    hint = f"; did you mean {shown(close[0], _MAX_KEY_LENGTH, repr)}?" if close else ""
    warn(
        f"{option}={shown(name, _MAX_KEY_LENGTH, repr)}: no chunk has this metadata key, {effect}{hint}",
        SourceWarning if by_source else PositionWarning,
        cause=f"{option}={key!r}",
    )
    return True


def first_name(metadata: Mapping[str, Any], keys: str | tuple[str, ...], besides: Collection[str] = ()) -> str | None:
    """Return the first value of these metadata keys that is a valid source name, besides placeholders."""
    for key in (keys,) if isinstance(keys, str) else keys:
        value = metadata.get(key)
        if value is not None and (name := source_name(value)) is not None and name not in besides:
            return name
    return None


def source_name(value: Any) -> str | None:
    """Convert a text, path or finite number to a source name; 5, 5.0 and "5" are equal: stores change number types."""
    if not isinstance(value, str) and isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return value if value and not value.isspace() else None
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value)) if abs(int(value)) < TOO_LARGE else None
    number = finite(value)
    return None if number is None else str(int(number) if number.is_integer() else number)


def numbers_named(names: Iterable[str]) -> list[int | float]:
    """Convert names to the numbers that they came from, for stores that do not match a number with a string."""
    numbers: list[int | float] = []
    for name in names:
        with suppress(ValueError, OverflowError):
            number = float(name)
            value = int(name) if number.is_integer() else number
            if source_name(value) == name and abs(value) < _MAX_STORED:
                numbers.append(value)
    return numbers


def text_of(texts: Mapping[Any, Any], name: str) -> Any:
    """Return the text of a source from a mapping, whose keys may be paths or numbers; None if missing."""
    return texts.get(name if name in texts else next((key for key in texts if source_name(key) == name), None))
