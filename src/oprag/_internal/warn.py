"""Warnings that point to the user's code and are issued once for each cause."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from types import FrameType

from oprag._internal.files.fork_safe import ForkSafeLock
from oprag.errors import OpragWarning

__all__ = ["forget", "warn", "warn_about_some"]

# Packages that call this one: their frames, and those of the standard library, can be between ours and the user's.
_RUNNERS = {
    *("oprag", "langchain_core", "langchain_community", "langchain_classic", "langchain", "langgraph", "langsmith"),
    *("llama_index", "llama_index_instrumentation", "workflows", "wrapt", "pydantic", "tenacity", "nest_asyncio"),
    *("asyncio", "concurrent", "threading"),
}
_BETWEEN = _RUNNERS | sys.stdlib_module_names
# Own record of issued warnings, oldest first: Python's is reset whenever a framework uses `warnings.catch_warnings`.
_issued: dict[tuple[type[OpragWarning], str | None], None] = {}
_MAX_ISSUED = 1_000
# By cause and group, the number of the warning in which each name was announced.
_announced: dict[tuple[type[OpragWarning], str], dict[str, int]] = {}
_MAX_OF_GROUP = 3
_lock = ForkSafeLock()


def warn(message: str, category: type[OpragWarning], cause: str | None = None) -> None:
    """Issue a warning with the file and line of the user's code.

    This is the first caller outside this package and the frameworks that call it. If a framework created the thread or
    task, it is the line in the main thread that waits for the framework. A cause is announced once.
    """
    if cause is not None and not _claim((category, cause)):
        return
    frame = _users_frame()
    try:
        # Without a registry, so that only our own record suppresses repetitions.
        warnings.warn_explicit(
            message, category, frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__")
        )
    except BaseException:
        # With warnings as errors, raise every time.
        with _lock:
            _issued.pop((category, cause), None)
        raise


def warn_about_some(
    message: str, category: type[OpragWarning], cause: str, *, group: str, names: Iterable[str], more: str
) -> None:
    """Issue a warning about names, such as sources, each once; after a few of a group, `more` is the last one."""
    name = f"{cause}\0{group}"
    with _lock:
        known = _announced.setdefault((category, name), {})
        new = [one for one in names if one not in known]
        number = len(set(known.values()))
        if not new or number > _MAX_OF_GROUP:
            return
        known.update(dict.fromkeys(new, number))
        while len(_announced) > _MAX_ISSUED:
            del _announced[next(iter(_announced))]
    try:
        warn(message if number < _MAX_OF_GROUP else more, category)
    except BaseException:
        with _lock:
            _announced.pop((category, name), None)
        raise


def forget() -> None:
    """Forget all warnings, so that they are issued again."""
    with _lock:
        _announced.clear()
        _issued.clear()


def _claim(cause: tuple[type[OpragWarning], str]) -> bool:
    """Record a cause; return whether it is new."""
    with _lock:
        if cause in _issued:
            return False
        _issued[cause] = None
        while len(_issued) > _MAX_ISSUED:
            del _issued[next(iter(_issued))]
    return True


def _users_frame() -> FrameType:
    """The user's frame in this thread, else in the main thread, else the first frame outside this package."""
    frames = list(_frames(sys._getframe()))  # noqa: SLF001
    inside, user = _to_user(frames)
    if user is None:
        main = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001
        inside, user = _to_user(_frames(main))
        # Without framework frames, the main thread is not waiting for us but running other code of the user.
        user = user if not inside.isdisjoint(_RUNNERS) else None
    return user or next((frame for frame in frames if _package(frame) != "oprag"), frames[-1])


def _to_user(frames: Iterable[FrameType]) -> tuple[set[str], FrameType | None]:
    """The packages called from the user's innermost frame, and that frame; None if all frames are internal."""
    inside: set[str] = set()
    for frame in frames:
        package = _package(frame)
        if package not in _BETWEEN:
            return inside, frame
        inside.add(package)
    return inside, None


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
