"""Calling a function in its own process: no caches, no memory of earlier calls, and its crash is not ours."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from oprag.errors import MeasuringError

__all__ = ["child_main", "in_fresh_process"]

Argument = TypeVar("Argument")
Value = TypeVar("Value")

# Modules are found as they are here, whatever the environment says.
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from oprag.compare.measure.process import child_main; child_main()"
)
SIZE_BYTES = 8
SHOWN = 4_000  # last bytes of what a process printed
GRACE = 5.0  # seconds to end after the value has come


class _Returned(NamedTuple):
    """The function returned."""

    value: Any


class _Raised(NamedTuple):
    """The function raised; the pickled error is empty where it cannot be pickled."""

    summary: str
    trace: str
    error: bytes


def in_fresh_process(function: Callable[[Argument], Value], argument: Argument) -> Value:
    """Call a function in a new Python process, and return what it returns.

    The function, which must be importable, its argument and its value are pickled. Nothing is written to disk, and
    `__main__` is not run again. The output of the function is not shown; its end is in the message if the process dies.

    The process is killed with its descendants when this call is interrupted (Ctrl-C), and ends when this process does,
    however that ends. Processes that the function left running are killed when its process ends normally.
    """
    name = function.__qualname__
    process = _FreshProcess()
    try:
        reply = process.ask(pickle.dumps((function, argument), pickle.HIGHEST_PROTOCOL))
    finally:
        process.end()
    if reply is None:
        raise MeasuringError(process.obituary(name), name)
    if isinstance(reply, _Raised):
        raise MeasuringError(
            f"{name} failed in a process of its own: {reply.summary}\n\n{reply.trace}".rstrip(), name
        ) from _unpickled(reply.error)
    value: Value = reply.value
    return value


class _FreshProcess:
    """A process that runs one function, and how it ended."""

    def __init__(self) -> None:
        self._printed = b""
        self._process = subprocess.Popen(  # noqa: S603 - this very interpreter
            [sys.executable, "-c", START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._reader = threading.Thread(target=self._read_printed, daemon=True)
        self._reader.start()

    def ask(self, work: bytes) -> _Returned | _Raised | None:
        """The reply of the process; None if it died before."""
        orders: Any = self._process.stdin
        results: Any = self._process.stdout
        # A process that is dead is noticed below, when nothing can be read.
        with contextlib.suppress(OSError):
            orders.write(len(work).to_bytes(SIZE_BYTES, "big") + work)
            orders.flush()
        size = results.read(SIZE_BYTES)
        reply = results.read(int.from_bytes(size, "big"))
        complete = len(size) == SIZE_BYTES and len(reply) == int.from_bytes(size, "big")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        return pickle.loads(reply) if complete else None  # noqa: S301 - of our own process

    def end(self) -> None:
        """Kill it with its descendants if it still runs, and close its pipes."""
        if self._process.poll() is None:
            _end_descendants(self._process.pid)
            self._process.kill()
        self._process.wait()
        # A process that it left running may hold the pipe open.
        self._reader.join(1)
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        self._process.stdout.close()  # type: ignore[union-attr]

    def obituary(self, name: str) -> str:
        """How it died, in words."""
        status = self._process.returncode
        if status == -getattr(signal, "SIGKILL", 9):
            how = "was killed (SIGKILL), which is what the system does when memory runs out"
        elif status < 0:
            how = f"was killed by signal {-status} ({signal.strsignal(-status)})"
        else:
            how = f"ended with status {status} before it returned"
        printed = self._printed.decode("utf-8", "replace").strip()
        return f"the process of {name} {how}" + (f"\n\nIt had printed:\n{printed}" if printed else "")

    def _read_printed(self) -> None:
        pipe: Any = self._process.stderr
        with pipe:
            while piece := pipe.read1(SHOWN):
                self._printed = (self._printed + piece)[-SHOWN:]


def _unpickled(error: bytes) -> BaseException | None:
    """The error itself; None if it cannot be unpickled."""
    try:
        found = pickle.loads(error)  # noqa: S301 - of our own process
    except Exception:  # noqa: BLE001 - objects unpickle themselves, and may raise anything
        return None
    return found if isinstance(found, BaseException) else None


def child_main() -> None:
    """The other side of `in_fresh_process`: run one function, from standard input to standard output.

    A pickle follows its length in bytes, both ways. From here on, what is printed goes to standard error, and standard
    input is empty.
    """
    orders, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):
        # A forked process that holds them open would hide the death of this one.
        os.register_at_fork(after_in_child=orders.close)
        os.register_at_fork(after_in_child=results.close)
    # End at once, even within compiled code, and print nothing.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faulthandler.enable()
    # Registered first, so it runs last.
    atexit.register(_end_descendants)
    work = orders.read(int.from_bytes(orders.read(SIZE_BYTES), "big"))
    threading.Thread(target=_end_with_parent, args=(orders.fileno(),), daemon=True).start()
    reply = pickle.dumps(_run(work), pickle.HIGHEST_PROTOCOL)
    with results:
        results.write(len(reply).to_bytes(SIZE_BYTES, "big") + reply)


def _run(work: bytes) -> _Returned | _Raised:
    try:
        function, argument = pickle.loads(work)  # noqa: S301 - from in_fresh_process
        return _Returned(function(argument))
    except BaseException as error:  # noqa: BLE001 - any error is sent to the parent
        pickled = b""
        with contextlib.suppress(Exception):
            pickled = pickle.dumps(error)
        # Without the frame of this module.
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        summary = "".join(traceback.format_exception_only(error)).strip()
        return _Raised(summary, "".join(traceback.format_exception(error)), pickled)


def _end_with_parent(orders: int) -> None:
    """End when the other side closes the pipe, which the system does when that process dies."""
    while os.read(orders, 1):
        pass
    _end_descendants()
    os._exit(1)


def _end_descendants(pid: int | None = None) -> None:
    """Kill all living descendants of a process, by default of this one."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for descendant in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                descendant.kill()
