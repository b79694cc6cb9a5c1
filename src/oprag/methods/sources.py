"""Whole sources: where their texts come from, and how they are made to fit into a prompt."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from copy import copy
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, NamedTuple

from oprag.assembly.stitch import Passage
from oprag.chunk import Chunk, Span
from oprag.context import Context
from oprag.errors import InputFileError, OptionError, SourceReadError, SourceTooLongError
from oprag.files.opening import open_regular, same_drive
from oprag.masking import describe
from oprag.methods.effects import ReadSources
from oprag.methods.task import Task
from oprag.options import check_count, requires
from oprag.positions.sources import text_of

__all__ = ["ReadSource", "SourceFolder", "SourceReader", "WholeSources", "as_reader", "read_with", "whole_sources"]

ReadSource = Callable[[str], str] | Mapping[str, str] | Mapping[Path, str] | str | os.PathLike[str]
"""Where whole sources come from: a function of the name, a mapping of names to texts, or a folder.

In LangChain, a function with a required parameter `filter` also receives the filter of the question, or None.
"""


class SourceFolder:
    """Reads the files of a folder. `read_source=` makes one from a path; pass one yourself to change the limits.

    The author of a document chooses its metadata, and with it the name of its source. So only regular files with these
    endings are read, nothing outside the folder (links are resolved first), and no file or folder whose name begins
    with a dot. Any other file in the folder can be named: give each tenant a folder or a function of its own.

    Args:
        folder: The folder.
        endings: File name endings that may be read, ignoring case. The pages of a PDF are joined by blank lines.
        max_bytes: Maximum size of a file in bytes.

    Raises:
        OptionError: The folder does not exist, or an option is invalid.

    Example:
        >>> from tempfile import mkdtemp
        >>> folder = Path(mkdtemp())
        >>> _ = (folder / "run.log").write_text("Started.")
        >>> SourceFolder(folder, endings=(".txt", ".log"))("run.log")
        'Started.'
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        endings: Iterable[str] = (".txt", ".text", ".md", ".markdown", ".rst", ".pdf"),
        max_bytes: int = 64 * 2**20,
    ) -> None:
        # Resolved now, since a program may change its working directory later.
        self._folder = Path(folder).resolve()
        if not str(folder) or not self._folder.is_dir():
            raise OptionError(f"read_source must be an existing folder, got {describe(str(folder))}", folder)
        value: Any = endings
        is_list = isinstance(value, Iterable) and not isinstance(value, str)
        self._endings = tuple(str(ending).lower() for ending in value) if is_list else ()
        if not self._endings or not all(ending.startswith(".") for ending in self._endings):
            raise OptionError('endings must be a list such as [".txt", ".md"]', endings)
        check_count("max_bytes", max_bytes, optional=False)
        self._max_bytes = max_bytes

    def __call__(self, name: str) -> str:
        """The text of a file."""
        path = self._path(name)
        try:
            data = self._data(path, name)
        except OSError as error:
            raise SourceReadError(f"cannot read source {name!r}: {error.strerror or error}", name) from error
        if path.suffix.lower() == ".pdf":
            # Loaded on demand: most folders have no PDF.
            from oprag.files.pdf import pdf_pages

            try:
                return "\n\n".join(pdf_pages(name, data, "cli"))
            except InputFileError as error:
                raise SourceReadError(f"cannot read source {name!r}: {error}", name) from error
        try:
            return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig").read()
        except UnicodeDecodeError as error:
            raise SourceReadError(
                f"source {name!r} is not UTF-8 text; give read_source= a function that reads it", name
            ) from error

    def _path(self, name: str) -> Path:
        """The path of a file that may be read, with all links resolved."""
        folder = self._folder
        try:
            paths = [path.resolve() for path in (folder / name, Path.cwd() / name) if same_drive(folder, path)]
            inside = [path for path in paths if path.is_relative_to(folder)]
            path = next((path for path in inside if path.is_file()), None)
        except (OSError, ValueError, RuntimeError) as error:  # too long, zero bytes, circles of links
            raise SourceReadError(f"source {name!r} is not a file name: {error}", name) from error
        if not inside:
            raise SourceReadError(f"source {name!r} is outside the folder {str(folder)!r}", name)
        if path is None:
            raise SourceReadError(f"there is no file {name!r} in {str(folder)!r}", name)
        if any(part.startswith(".") for part in path.relative_to(folder).parts):
            raise SourceReadError(f"source {name!r} is hidden: names that begin with a dot are not read", name)
        if not path.name.lower().endswith(self._endings):
            raise SourceReadError(
                f"source {name!r} is not read: only files that end in {', '.join(self._endings)} are; to allow others, "
                "use read_source=oprag.methods.SourceFolder(folder, endings=...)",
                name,
            )
        return path

    def _data(self, path: Path, name: str) -> bytes:
        """The bytes of a file; a link or pipe that replaces it after the check is refused."""
        with open_regular(path, follow_links=False, below=self._folder) as file:
            size = os.fstat(file.fileno()).st_size
            if size > self._max_bytes:
                raise SourceReadError(
                    f"source {name!r} has {size:,} bytes, and the limit is {self._max_bytes:,}; to raise it, "
                    "use read_source=oprag.methods.SourceFolder(folder, max_bytes=...)",
                    name,
                )
            return file.read(self._max_bytes)


class SourceReader:
    """Reads the whole text of a source by its name.

    Args:
        read_source: A function, a mapping or a folder.

    Raises:
        OptionError: `read_source` is none of them, or the folder does not exist.
    """

    def __init__(self, read_source: ReadSource) -> None:
        self._read_source: Any = read_source
        if isinstance(read_source, str | os.PathLike):
            self._read_source = SourceFolder(read_source)
        elif iscoroutinefunction(read_source):
            raise OptionError("read_source must be a function that gives the text, and not an async one", read_source)
        elif not isinstance(read_source, Mapping) and not callable(read_source):
            raise OptionError(
                f"read_source must be a folder, a mapping or a function, got {type(read_source).__name__}", read_source
            )

    def filtered(self, filter: Callable[[], Any]) -> SourceReader:
        """The reader for one question; its filter is passed to a function that requires one."""
        read_source = self._read_source
        if not requires(read_source, "filter"):
            return self
        reader = copy(self)
        reader._read_source = lambda name: read_source(name, filter=filter())  # noqa: SLF001
        return reader

    def __call__(self, name: str) -> str:
        """The text of a source."""
        read_source = self._read_source
        text = text_of(read_source, name) if isinstance(read_source, Mapping) else read_source(name)
        if not isinstance(text, str):
            found = "nothing" if text is None else type(text).__name__
            raise SourceReadError(f"read_source has no text for source {name!r}: it gave {found}", name)
        return text


def as_reader(read_source: ReadSource | None) -> SourceReader | None:
    """The reader for the option `read_source`, or None, with the errors of `SourceReader`."""
    return None if read_source is None else SourceReader(read_source)


def read_with(reader: SourceReader | None, name: str) -> str:
    """The whole text of a source, or a `SourceReadError` that asks for `read_source=`."""
    if reader is None:
        raise SourceReadError(f"source {name!r} cannot be read, since there is no read_source=", name)
    return reader(name)


_CUT_MARK = "\n[...]\n"


class WholeSources(NamedTuple):
    """The text of whole sources, for a prompt.

    Attributes:
        text: The text of all sources, one after the other.
        passages: One passage for each source, for citations.
        notes: Remarks about text that was left out.
    """

    text: str
    passages: tuple[Passage, ...]
    notes: tuple[str, ...]


def whole_sources(task: Task, context: Context) -> Generator[ReadSources, Any, WholeSources]:
    """Read the sources of a context, in its order, and cut them to `source_token_budget` and the window."""
    names: list[str] = []
    for chunk in context.kept:
        if chunk.source is None:
            raise SourceReadError(
                "a retrieved chunk does not say which source it came from, so its whole source cannot be read", chunk
            )
        if chunk.source not in names:
            names.append(chunk.source)
    texts = yield ReadSources(tuple(names))
    passages = tuple(
        Passage(text, (Chunk(text, 0, source=name, span=span),), (span,))
        for name, text in zip(names, texts, strict=True)
        for span in (Span(0, len(text)),)
    )
    text = task.context_options.separator.join(
        task.shown(passage, number) for number, passage in enumerate(passages, 1)
    )
    budget, room = task.options.source_token_budget, task.room("answer", context="")
    limit = "" if budget is None else f"source_token_budget={budget:,}"
    if room is not None and (budget is None or room.tokens < budget):
        budget, limit = max(0, room.tokens), f"and {room}"
    if budget is None or (tokens := task.count(text)) <= budget:
        return WholeSources(text, passages, ())
    if task.options.overflow == "error":
        raise SourceTooLongError(
            f"the whole of {_listed(names)} has {tokens:,} tokens, {limit}; use "
            'overflow="truncate_middle" or "truncate_end", or a method that reads passages',
            names,
        )
    cut = _cut(text, budget, task)
    note = f"whole sources had {tokens:,} tokens, of which {task.count(cut):,} were read ({task.options.overflow})"
    if cut == text[: len(cut)]:
        # Passages that begin after the cut were not read, so no marker cites them.
        passages = tuple(_begun(task, passages, len(cut)))
        if unread := names[len(passages) :]:
            note += f"; nothing of {_listed(unread)}"
    return WholeSources(cut, passages, (note,))


def _begun(task: Task, passages: Sequence[Passage], length: int) -> Iterator[Passage]:
    """The passages that begin within a number of characters of the text of all."""
    start = 0
    for number, passage in enumerate(passages, 1):
        shown = task.shown(passage, number)
        if start + len(shown) - len(passage.text) < length:
            yield passage
        start += len(shown) + len(task.context_options.separator)


def _cut(text: str, budget: int, task: Task) -> str:
    """The longest beginning, or beginning and end of equal length, that fits."""
    overflow = task.options.overflow
    if task.count(_CUT_MARK) > budget:
        overflow = "truncate_end"  # no room for the mark
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if task.count(_cut_to(text, middle, overflow)) <= budget:
            low = middle
        else:
            high = middle
    return _cut_to(text, low, overflow)


def _cut_to(text: str, length: int, overflow: str) -> str:
    """The text cut to a number of characters, and a mark where its middle is missing."""
    if overflow == "truncate_end":
        return text[:length]
    # As LongBench cuts.
    first = length - length // 2
    return text[:first] + _CUT_MARK + text[len(text) - length // 2 :]


def _listed(names: Sequence[str]) -> str:
    return f"source {describe(names[0])}" if len(names) == 1 else f"{len(names)} sources"
