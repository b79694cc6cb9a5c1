"""One file for each source in the file system of a Deep Agent: the passages that were found, in source order."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import groupby
from typing import Any, NamedTuple

from langchain_core.messages import ToolMessage

from oprag._internal.masking import describe, shown
from oprag._internal.tokens import count
from oprag.agents.numbered_text import NOTHING, clean_note, joined, source_label
from oprag.agents.working_context import WorkingContext
from oprag.chunk import counted
from oprag.errors import OptionError
from oprag.langchain.search_results import Gathered, SearchResult
from oprag.langchain.tool_results import IN_FILES, is_saved_elsewhere

__all__ = ["FileUpdate", "SourceFiles"]

_FOLDER = "/sources/"
_SUBAGENTS = "subagents/"  # inside the folder of the agent that calls them
_KEY = "files"  # of the state of a Deep Agent
_LONG_RESULTS = "/large_tool_results/"  # where Deep Agents moves long results
_NAME_LENGTH = 40  # characters
_TEXT_TYPES = (".md", ".txt")  # Deep Agents reads some others, such as ".pdf", as binary
# At the start of a line, which the text of a document cannot contain.
_NUMBER = re.compile(r"(?:## )?\[(\d+)\] ")


class FileUpdate(NamedTuple):
    """What to write after a search."""

    messages: list[ToolMessage]  # of the search results, which say where the passages are, and of subagents
    state: dict[str, Any]  # the update of the agent's state
    uploads: list[tuple[str, bytes]]  # for the backend
    deletions: list[str]  # paths that the backend no longer needs


class SourceFiles:
    """Writes a file for each source in which searches found something, to the agent's backend or its state."""

    def __init__(self, files: Any) -> None:
        if files is not True and not all(hasattr(files, name) for name in ("upload_files", "delete")):
            raise OptionError(
                f"files must be True, False or the backend of the agent, got {describe(files)}; pass the same backend "
                "as to create_deep_agent",
                files,
            )
        self._backend: Any = None if files is True else files

    def update(self, state: Any, runtime: Any, working: WorkingContext, gathered: Gathered) -> FileUpdate:
        """Write the sources of what was gathered, and the messages about it."""
        if self._backend is None and _KEY not in state:
            raise OptionError(
                "files=True requires an agent with files in its state, from create_deep_agent; if that has a backend, "
                "pass the same one to the middleware, as in files=backend",
                state,
            )
        folder = _FOLDER if self._backend is None else _own_folder(runtime)
        numbers = {number for result in gathered.results for number in result.numbers} | gathered.joined
        files = _files(working, numbers, folder)
        texts = {file.path: file.text for file in files}
        moved = [result.message for result in gathered.results if is_saved_elsewhere(result.message)]
        # Not the path in its text, which any tool can write.
        saved = [_LONG_RESULTS + re.sub(r"[./\\]", "_", message.tool_call_id) for message in moved]
        messages = [_with(result.message, _listing(result, files, working)) for result in gathered.results]
        if self._backend is None:
            return FileUpdate([*messages, *gathered.answers], {_KEY: _changes(state[_KEY], texts, saved)}, [], [])
        # The files of subagents have their own numbers.
        of_subagent = re.compile(rf"{re.escape(folder)}(?:{_SUBAGENTS}\w+/)+")
        messages += [_with(one, of_subagent.sub(folder, one.text)) for one in gathered.answers]
        deletions = [*saved, *([folder + _SUBAGENTS] if gathered.answers else [])]
        return FileUpdate(messages, {}, [(path, text.encode()) for path, text in texts.items()], deletions)

    def save(self, update: FileUpdate) -> None:
        """Write files to the backend."""
        if update.uploads:
            _check(self._backend.upload_files(update.uploads))
        with suppress(NotImplementedError):
            for path in update.deletions:
                self._backend.delete(path)

    async def asave(self, update: FileUpdate) -> None:
        """Async version of `save`."""
        if update.uploads:
            _check(await self._backend.aupload_files(update.uploads))
        with suppress(NotImplementedError):
            for path in update.deletions:
                await self._backend.adelete(path)


def _with(message: ToolMessage, content: str) -> ToolMessage:
    return message.model_copy(update={"content": content})


def _own_folder(runtime: Any) -> str:
    """The folder of an agent in a backend, which is shared by threads and parallel subagents, unlike their numbers."""
    about = getattr(runtime, "execution_info", None)
    thread = getattr(about, "thread_id", None)
    callers = (getattr(about, "checkpoint_ns", None) or "").split("|")[:-1]
    own = f"{_FOLDER}{_digest(str(thread))}/" if thread else _FOLDER
    return "".join([own, *(f"{_SUBAGENTS}{_digest(caller)}/" for caller in callers)])


class _File(NamedTuple):
    """The file of a source."""

    path: str
    label: str  # the name of the source
    text: str
    lines: dict[int, tuple[int, int]]  # the first and last line of each passage, by number, in order


def _files(working: WorkingContext, numbers: set[int], folder: str) -> list[_File]:
    """The files of the sources of these numbers, each with everything that was gathered from the source."""
    sources = working.sources
    # All of them, because names depend on those that were taken before.
    names = _names(source or "" for source in sources)
    files = []
    for source in (source for source, its in sources.items() if not numbers.isdisjoint(its)):
        text = working.source_text(source)
        label = source_label(source or "") or "unnamed source"
        files.append(_File(folder + names[source or ""], label, text, _lines(text)))
    return files


def _names(sources: Iterable[str]) -> dict[str, str]:
    """A file name for each source: its own name where it is one, else the end of it with a digest."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for source in sources:
        name = re.sub(r"[^\w.-]+", "_", shown(source, 200))[-_NAME_LENGTH:].strip("._-") or "source"
        stem, _, ending = (name if name.lower().endswith(_TEXT_TYPES) else f"{name}.md").rpartition(".")
        if name != source:
            stem = f"{stem}-{_digest(source)}"
        while f"{stem}.{ending}".casefold() in taken:
            stem += "_"
        names[source] = f"{stem}.{ending}"
        taken.add(names[source].casefold())
    return names


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _lines(text: str) -> dict[int, tuple[int, int]]:
    """The first and last line of each passage of a file."""
    lines = text.split("\n")
    starts = [(int(marker[1]), line) for line, written in enumerate(lines, 1) if (marker := _NUMBER.match(written))]
    ends = [*(line - 1 for _, line in starts[1:]), len(lines) - 1]
    return {number: (start, end) for (number, start), end in zip(starts, ends, strict=True)}


def _listing(result: SearchResult, files: Iterable[_File], working: WorkingContext) -> str:
    """The message for a search result: paths and sizes of the files, and where its passages are in them."""
    if not result.numbers:
        return joined(NOTHING, clean_note(result.note))
    new = {number for number in result.numbers if number > result.known}
    before = {number for number in result.numbers if number <= result.known}
    lines = [f"{counted(len(result.numbers), 'passage')} found, {len(new):,} new: {IN_FILES}"]
    for file in files:
        parts = [
            f"{title} {runs}"
            for title, numbers in (("new", new), ("found before", before))
            if (runs := _runs(file.lines, numbers.__contains__))
        ]
        if parts:
            tokens = counted(count(file.text, working.options.count_tokens), "token")
            size = counted(file.text.count("\n"), "line")
            label = "" if file.path.endswith(f"/{file.label}") else f"{file.label}; "
            lines.append(f"{file.path} ({label}{size}, {tokens}): {'; '.join(parts)}")
    return joined("\n".join(lines), clean_note(result.note))


def _runs(lines: Mapping[int, tuple[int, int]], is_wanted: Callable[[int], bool]) -> str:
    """The lines and numbers of the wanted passages of a file; those that follow each other together."""
    runs = []
    for wanted, group in groupby(lines, is_wanted):
        if wanted:
            numbers = list(group)
            first, last = lines[numbers[0]][0], lines[numbers[-1]][1]
            where = f"lines {first}-{last}" if first < last else f"line {first}"
            runs.append(" ".join([where, *(f"[{number}]" for number in numbers)]))
    return ", ".join(runs)


def _changes(files: Mapping[str, Any], texts: Mapping[str, str], saved: Iterable[str]) -> dict[str, Any]:
    """The update of the files in a state: new texts, and no second copy of results that Deep Agents saved as well."""
    now = datetime.now(UTC).isoformat()
    update: dict[str, Any] = {path: None for path in saved if path in files}
    for path, text in texts.items():
        known = files.get(path) or {}
        if known.get("content") != text:
            created = known.get("created_at", now)
            update[path] = {"content": text, "encoding": "utf-8", "created_at": created, "modified_at": now}
    return update


def _check(responses: Iterable[Any]) -> None:
    """Raise an error if a backend did not write a file."""
    for response in responses:
        if response.error:
            raise OptionError(
                f"the backend in files= did not write {describe(response.path)}: {describe(response.error)}; pass a "
                "backend that the agent can write to",
                response,
            )
