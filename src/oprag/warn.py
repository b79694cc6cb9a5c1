"""Warnings that point at the code that called this package, and come once for each cause."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from types import FrameType

from oprag.errors import OpragWarning
from oprag.files.fork_safe import ForkSafeLock

__all__ = ["forget", "warn"]

# What runs the code of others: frames of it and of the standard library can be between ours and those of the user.
_RUNNERS = {
    *("oprag", "langchain_core", "langchain_community", "langchain_classic", "langchain", "langgraph", "langsmith"),
    *("llama_index", "llama_index_instrumentation", "workflows", "wrapt", "pydantic", "tenacity", "nest_asyncio"),
    *("asyncio", "concurrent", "threading"),
}
_BETWEEN = _RUNNERS | sys.stdlib_module_names
# Frameworks reset Python's own record of warnings with every call of `warnings.catch_warnings`.
_told: dict[tuple[type[OpragWarning], str, str], None] = {}
_MOST_TOLD = 1_000
_lock = ForkSafeLock()


def warn(
    message: str, category: type[OpragWarning], cause: str | None = None, keys: Iterable[str] = frozenset()
) -> None:
    """Warn, with the file and line of the user's code.

    That is the first caller outside of this package and of the frameworks that call it; where a framework made the
    thread or the task, it is the line in the main thread that waits for the framework.
    """
    claimed = None if cause is None else _claim([(category, cause, key) for key in ("", *keys)])
    if claimed == []:
        return
    frame = _users_frame()
    try:
        # Without a registry: nothing but our own record decides whether it was told.
        warnings.warn_explicit(
            message, category, frame.f_code.co_filename, frame.f_lineno, frame.f_globals.get("__name__")
        )
    except BaseException:
        # With warnings as errors it was not told yet, and is an error every time.
        forget(claimed or [])
        raise


def forget(told: Iterable[tuple[type[OpragWarning], str, str]] | None = None) -> None:
    """Forget these causes, or all of them, so that they are told again."""
    with _lock:
        for cause in list(_told) if told is None else told:
            _told.pop(cause, None)


def _claim(causes: list[tuple[type[OpragWarning], str, str]]) -> list[tuple[type[OpragWarning], str, str]]:
    """Those of the causes that nobody told yet, which are ours now."""
    with _lock:
        new = [cause for cause in causes if cause not in _told]
        _told.update(dict.fromkeys(new))
        while len(_told) > _MOST_TOLD:
            del _told[next(iter(_told))]
    return new


def _users_frame() -> FrameType:
    """The user's frame in this thread, or else in the main thread; or else the first one that is not ours."""
    frames = list(_frames(sys._getframe()))  # noqa: SLF001
    inside, user = _to_user(frames)
    if user is None:
        main = sys._current_frames().get(threading.main_thread().ident or 0)  # noqa: SLF001
        inside, user = _to_user(_frames(main))
        # A main thread that does something else of the user's does not wait for us.
        user = user if not inside.isdisjoint(_RUNNERS) else None
    return user or next((frame for frame in frames if _package(frame) != "oprag"), frames[-1])


def _to_user(frames: Iterable[FrameType]) -> tuple[set[str], FrameType | None]:
    """The packages inside of the user's first frame, and this frame."""
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
