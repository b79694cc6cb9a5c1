"""Reads the text of whole sources from a folder, a mapping of names to texts, a function, or a loader's documents."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from oprag._internal.files.fork_safe import ForkSafeLock
from oprag._internal.filter_key import filter_key
from oprag._internal.masking import describe, error_text, masked_error, shown
from oprag._internal.warn import warn
from oprag.chunk import Chunk
from oprag.errors import OpragError, OpragWarning, OptionError, PositionWarning, SourceReadError
from oprag.options import check_count, requires
from oprag.positions.source_names import source_of, text_of
from oprag.positions.source_text import SourceText

__all__ = ["READABLE", "ReadSource", "SourceFolder", "SourceReader", "SourceTexts", "as_reader", "read_with"]

READABLE = (".txt", ".text", ".md", ".markdown", ".rst", ".pdf")
"""The suffixes of files that a folder reads by default."""
_MAX_PDFS = 64
_CACHE_SIZE = 64 * 2**20  # characters of the texts in which chunks are located
_OVERHEAD = 1_000  # characters that a text in which chunks are located counts in addition, even if it cannot be read
_MAX_AGE = 60.0  # seconds after which it is read again
_MAX_NAME_LENGTH, _MAX_ERROR_LENGTH = 45, 100  # characters in a warning
_LIMITS = "; to allow it, use read_source=oprag.SourceFolder(folder, "

ReadSource = Callable[[str], str] | Mapping[str, str] | Mapping[Path, str] | Sequence[Any] | str | os.PathLike[str]
"""Reads whole sources: a function that takes the name, a mapping of names to texts, a folder, or the documents of a
loader (LangChain or LlamaIndex), whose texts are those that were split.

In LangChain, a function with a required parameter `filter` also receives the filter of the search, or None if nothing
restricts the search; it is not called if the filter cannot be determined.
"""


class SourceFolder:
    """Reads source texts from the files of a folder.

    `read_source=` creates one from a path; pass a `SourceFolder` to change the limits.

    The author of a document can choose the source name in its metadata. Therefore only regular files with the given
    suffixes are read, no files outside the folder (links are resolved first), and no files or folders whose name starts
    with a dot. Metadata can name any other file in the folder, so use a separate folder or function for each tenant.

    Args:
        folder: The folder.
        suffixes: File name suffixes to read, ignoring case. The pages of a PDF are joined with blank lines.
        max_bytes: Maximum size of a file in bytes.

    Raises:
        OptionError: The folder does not exist, or an option is invalid.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> _ = (folder / "run.log").write_text("Started.")
        >>> SourceFolder(folder, suffixes=(".txt", ".log"))("run.log")
        'Started.'
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        suffixes: Iterable[str] = READABLE,
        max_bytes: int = 64 * 2**20,
    ) -> None:
        # Resolve now, because the program may change its working directory later.
        self._folder = Path(folder).resolve()
        if not str(folder) or not self._folder.is_dir():
            raise OptionError(f"read_source must be an existing folder, got {describe(str(folder))}", folder)
        value: Any = suffixes
        is_list = isinstance(value, Iterable) and not isinstance(value, str)
        self._suffixes = tuple(str(suffix).lower() for suffix in value) if is_list else ()
        if not self._suffixes or not all(suffix.startswith(".") for suffix in self._suffixes):
            raise OptionError(f'suffixes must be a list such as [".txt", ".md"], got {describe(suffixes)}', suffixes)
        check_count("max_bytes", max_bytes, optional=False)
        self._max_bytes = max_bytes

    def __call__(self, name: str) -> str:
        """Read a file.

        Args:
            name: The name of the file, relative to the folder or the working directory.

        Returns:
            The text of the file.

        Raises:
            SourceReadError: The file is missing, not allowed, too large or unreadable.
        """
        from oprag._internal.files.reading import open_regular  # only a folder needs it

        try:
            path = self._path(name)
            with open_regular(path, below=self._folder) as file:
                if path.suffix.lower() == ".pdf":
                    return _text_of_pdf(path, name, file)
                return io.TextIOWrapper(io.BytesIO(file.read(self._max_bytes)), encoding="utf-8-sig").read()
        except _RefusedError as error:
            why = str(error)
        except UnicodeDecodeError:
            why = "is not UTF-8 text; convert it, or pass a function that reads it as read_source="
        except (OSError, ValueError, RuntimeError) as error:  # too long, null bytes, cyclic links, an invalid PDF
            why = f"cannot be read: {getattr(error, 'strerror', None) or error_text(error)}"
        raise SourceReadError(f"source {describe(name)} {why}", name)

    def _path(self, name: str) -> Path:
        """Return the path of an allowed file, with all links resolved."""
        from oprag._internal.files.reading import resolved, same_drive

        folder = self._folder
        paths = [resolved(path) for path in (folder / name, Path.cwd() / name) if same_drive(folder, path)]
        inside = [path for path in paths if path.is_relative_to(folder)]
        if not inside:
            raise _RefusedError(
                f"is outside the folder {describe(folder)}; pass a folder that contains all sources as read_source="
            )
        path = next((path for path in inside if path.is_file()), None)
        if path is None:
            raise _RefusedError(
                f"was not found in {describe(folder)}; if the files have other names, pass a mapping or a function as "
                "read_source="
            )
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            raise _RefusedError("is hidden, and names that start with a dot are not read; rename it")
        if not path.name.lower().endswith(self._suffixes):
            suffixes = ", ".join(self._suffixes)
            raise _RefusedError(f"is not read: its name must end with one of {suffixes}{_LIMITS}suffixes=...)")
        if (size := path.stat().st_size) > self._max_bytes:
            raise _RefusedError(
                f"has {size:,} bytes, more than the limit of {self._max_bytes:,}{_LIMITS}max_bytes=...)"
            )
        return path


class _RefusedError(Exception):
    """A file that may not be read; the message continues "source 'a.txt'"."""


# The texts of PDFs, shared by all folders, the most recently used last: reading one takes seconds.
_pdfs: dict[tuple[Path, int, int], str] = {}
_pdfs_lock = ForkSafeLock()


def _text_of_pdf(path: Path, name: str, file: io.BufferedReader) -> str:
    """The text of a file, read once until the file changes; concurrent questions wait for it."""
    # Imported on demand: most folders contain no PDF.
    from oprag._internal.files.pdf import pdf_pages

    about = os.fstat(file.fileno())
    key = path, about.st_ino, about.st_mtime_ns
    with _pdfs_lock:
        text = _pdfs.pop(key, None)
        _pdfs[key] = text = "\n\n".join(pdf_pages(name, file.read(), "cli")) if text is None else text
        while len(_pdfs) > _MAX_PDFS:
            del _pdfs[next(iter(_pdfs))]
    return text


class SourceReader:
    """Reads the whole text of a source by its name; raises `OptionError` for what it cannot read from."""

    def __init__(self, read_source: ReadSource) -> None:
        self._read_source: Any = read_source
        self._filter: Callable[[], Any] | None = None
        if isinstance(read_source, str | os.PathLike):
            self._read_source = SourceFolder(read_source)
        elif iscoroutinefunction(read_source):
            raise OptionError("read_source must be a regular function, got an async function", read_source)
        elif isinstance(read_source, list | tuple):
            self._read_source = _texts_of(read_source)
        elif not isinstance(read_source, Mapping) and not callable(read_source):
            raise OptionError(
                "read_source must be a folder, a mapping, a function or the documents of a loader, got "
                f"{type(read_source).__name__}",
                read_source,
            )

    def filtered(self, filter: Callable[[], Any]) -> SourceReader:
        """Return a reader for one question that passes its filter to a function that requires one."""
        if not requires(self._read_source, "filter"):
            return self
        reader = copy(self)
        reader._filter = filter  # noqa: SLF001
        return reader

    @property
    def filter(self) -> Any:
        """The filter that the texts depend on; None unless the function requires a filter."""
        return None if self._filter is None else self._filter()

    def __call__(self, name: str) -> str:
        """Return the text of a source."""
        read_source, given = self._read_source, {} if self._filter is None else {"filter": self._filter()}
        try:
            text = text_of(read_source, name) if isinstance(read_source, Mapping) else read_source(name, **given)
        except (OpragError, OpragWarning):
            raise
        except Exception as error:
            raise SourceReadError(
                f"read_source failed on source {describe(name)}: {masked_error(error)}", name
            ) from error
        if not isinstance(text, str):
            found = "nothing" if text is None else type(text).__name__
            raise SourceReadError(f"read_source must return the text of source {describe(name)}, got {found}", name)
        return text


def _texts_of(documents: Sequence[Any]) -> dict[str, str]:
    """Return the text of each source; the pages or sections of a file are joined with blank lines, as for a PDF."""
    texts: dict[str, list[str]] = {}
    for document in documents:
        content = getattr(document, "page_content", None)
        text = getattr(document, "text", None) if content is None else content
        metadata = getattr(document, "metadata", None)
        if not isinstance(text, str) or not isinstance(metadata, Mapping):
            raise OptionError(
                f"read_source must be a list of LangChain or LlamaIndex documents, got {type(document).__name__} in it",
                document,
            )
        # A LlamaIndex document without a name is known by its id.
        name = source_of(Chunk(text, 0, metadata=metadata, document_id=getattr(document, "node_id", None)))
        if name is None:
            raise OptionError(
                "a document in read_source does not name its source; pass a mapping of source names to texts instead",
                document,
            )
        texts.setdefault(name, []).append(text)
    return {name: "\n\n".join(parts) for name, parts in texts.items()}


def as_reader(read_source: ReadSource | None) -> SourceReader | None:
    """Return the reader for the option `read_source`, or None; raises the errors of `SourceReader`."""
    return None if read_source is None else SourceReader(read_source)


def read_with(reader: SourceReader | None, name: str) -> str:
    """Return the whole text of a source; without a reader, raise `SourceReadError`."""
    if reader is None:
        raise SourceReadError(
            f"source {describe(name)} cannot be read without read_source=; pass a folder, a mapping, a function or "
            "the documents of a loader",
            name,
        )
    return reader(name)


class SourceTexts:
    """A cache of source texts, each read when the order of its chunks is first needed."""

    def __init__(self, reader: SourceReader) -> None:
        self.reader = reader
        # By source and filter: the time at which the text is read again, and the text; None if it cannot be read.
        self._cached: dict[tuple[str, Hashable], tuple[float, SourceText | None]] = {}

    def reading(self, filter: Callable[[], Any]) -> Callable[[Sequence[Chunk]], SourceText | None] | None:
        """Return a function that reads the source of chunks; None if the filter of the search cannot be read."""
        reader = self.reader.filtered(filter)
        try:
            scope = filter_key(reader.filter)
        except OptionError:
            warn(
                "read_source is not used, because it requires the filter of the search, which is not known; pass a "
                "function without the parameter filter",
                PositionWarning,
                cause="filter of read_source",
            )
            return None
        return lambda chunks: self._text(chunks[0].source or "", scope, reader)

    def _text(self, source: str, scope: Hashable, reader: SourceReader) -> SourceText | None:
        now = time.monotonic()
        until, known = self._cached.get((source, scope), (now, None))
        if now < until:
            return known
        text = _read_or_warn(source, reader)
        if known is None or text != known.text:
            known = None if text is None else SourceText(text)
        # Copy the values: another thread may change the dictionary.
        sizes = (_OVERHEAD + len(one.text if one else "") for _, one in list(self._cached.values()))
        if sum(sizes) > _CACHE_SIZE:
            self._cached.clear()
        self._cached[source, scope] = now + _MAX_AGE, known
        return known


def _read_or_warn(source: str, reader: SourceReader) -> str | None:
    try:
        return reader(source)
    except Exception as error:  # noqa: BLE001 - the caller's function can raise anything; retrieval still succeeds
        warn(
            f"{shown(source, _MAX_NAME_LENGTH, repr, end=True)} cannot be read, so its chunks are not located in it: "
            f"{shown(masked_error(error), _MAX_ERROR_LENGTH, end=False)}",
            PositionWarning,
            cause=f"source that cannot be read: {describe(source)}",
        )
        return None
