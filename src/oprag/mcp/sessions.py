"""The working context of each session of an MCP server."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock

from oprag.agents.working_context import WorkingContext
from oprag.chunk import Chunk
from oprag.options import ContextOptions

__all__ = ["Session", "Sessions"]

_MAX_SESSIONS = 100
_MAX_CALLS = 500  # calls of a session that are remembered

_REPEATED = "(Passages without text were shown before; call again with show_again=true to read their text.)"
_RENUMBERED = "(The numbers of all earlier passages are no longer valid; passages are numbered from 1 again.)"


class Session:
    """The working context of one session; several threads can use it.

    After many calls it is emptied, because a client can call without end.
    """

    def __init__(self, options: ContextOptions) -> None:
        self._options = options
        self._lock = Lock()
        self._working = WorkingContext(options)
        self._calls = 0

    @property
    def working(self) -> WorkingContext | None:
        """The working context; None if nothing was gathered."""
        return self._working if len(self._working) else None

    def add(self, found: Iterable[Chunk], note: str, *, show_again: bool) -> tuple[str, dict[int, Chunk]]:
        """Gather chunks; returns the text for the model, and the chunks by their numbers, in the order of the text."""
        with self._lock:
            notes = [note]
            if self._calls >= _MAX_CALLS:
                self._working, self._calls = WorkingContext(self._options), 0
                notes.append(_RENUMBERED)
            self._calls += 1
            if show_again:
                self._working.forget(self._working.searches)
            delta = self._working.add(found, note="\n".join(filter(None, notes)))
            text = f"{delta.text}\n\n{_REPEATED}" if delta.repeated else delta.text
            return text, {number: self._working.chunk(number) for number in delta.numbers}


class Sessions:
    """The sessions of a server; the least recently used ones are dropped."""

    def __init__(self, options: ContextOptions) -> None:
        self._options = options
        self._lock = Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def of(self, name: str | None) -> Session:
        """The session with this name; a new one for None."""
        if name is None:
            return Session(self._options)
        with self._lock:
            session = self._sessions.pop(name, None) or Session(self._options)
            self._sessions[name] = session
            if len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)
            return session
