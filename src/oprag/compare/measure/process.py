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
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple, TypeVar

from oprag.errors import MeasuringError

__all__ = ["child_main", "in_fresh_process"]

Argument = TypeVar("Argument")
Value = TypeVar("Value")

# Modules are found as they are here, whatever the environment says.
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from oprag.compare.measure.process import child_main; child_main()"
)
SHOWN = 4_000  # last bytes of what a process printed
GRACE = 5.0  # seconds to end after the function has returned


class _Reply(NamedTuple):
    """What the function returned, or what it raised."""

    value: Any = None
    summary: str = ""  # of the error
    trace: str = ""
    error: bytes = b""  # pickled, if it can be


def in_fresh_process(function: Callable[[Argument], Value], argument: Argument) -> Value:
    """Call a function in a new Python process, and return what it returns.

    The function, which must be importable, its argument and its value are pickled; `__main__` is not run again. The
    output of the function is not shown; its end is in the message if the process dies.

    The process is killed with its descendants when this call is interrupted (Ctrl-C), and ends when this process does,
    however that ends. Processes that the function left running are killed when its process ends normally.
    """
    name = function.__qualname__
    # Files, since a process that the function left running could hold a pipe open.
    with TemporaryFile() as returned, TemporaryFile() as printed:
        status = _run_process(pickle.dumps((function, argument), pickle.HIGHEST_PROTOCOL), returned, printed)
        returned.seek(0)
        try:
            reply: _Reply = pickle.load(returned)  # noqa: S301 - of our own process
        except (EOFError, pickle.UnpicklingError):
            raise MeasuringError(_how_it_died(name, status, printed), name) from None
    if reply.summary:
        raise MeasuringError(
            f"{name} failed in a process of its own: {reply.summary}\n\n{reply.trace}".rstrip(), name
        ) from _unpickled(reply.error)
    value: Value = reply.value
    return value


def _run_process(work: bytes, returned: IO[bytes], printed: IO[bytes]) -> int:
    """Run a process to its end, and return its status."""
    process = subprocess.Popen(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", START, json.dumps(sys.path)], stdin=subprocess.PIPE, stdout=returned, stderr=printed
    )
    orders: Any = process.stdin
    try:
        # One that is dead already has returned nothing.
        with contextlib.suppress(OSError):
            orders.write(work)
            orders.flush()
        return process.wait()
    finally:
        if process.poll() is None:
            _end_descendants(process.pid)
            process.kill()
            process.wait()
        # Not before, since the process ends when this is closed.
        with contextlib.suppress(OSError):
            orders.close()


def _how_it_died(name: str, status: int, printed: IO[bytes]) -> str:
    if status == -getattr(signal, "SIGKILL", 9):
        how = "was killed (SIGKILL), which is what the system does when memory runs out"
    elif status < 0:
        how = f"was killed by signal {-status} ({signal.strsignal(-status)})"
    else:
        how = f"ended with status {status} before it returned"
    printed.seek(max(0, printed.seek(0, os.SEEK_END) - SHOWN))
    output = printed.read().decode("utf-8", "replace").strip()
    return f"the process of {name} {how}" + (f"\n\nIt had printed:\n{output}" if output else "")


def _unpickled(error: bytes) -> BaseException | None:
    """The error itself; None if it cannot be unpickled."""
    try:
        found = pickle.loads(error)  # noqa: S301 - of our own process
    except Exception:  # noqa: BLE001 - objects unpickle themselves, and may raise anything
        return None
    return found if isinstance(found, BaseException) else None


def child_main() -> None:
    """The other side of `in_fresh_process`: run one function, from standard input to standard output.

    From here on, what is printed goes to standard error, and standard input is empty.
    """
    orders, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    # End at once, even within compiled code, and print nothing.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faulthandler.enable()
    # Registered first, so it runs last.
    atexit.register(_end_descendants)
    reply = pickle.dumps(_called(orders), pickle.HIGHEST_PROTOCOL)
    with results:
        results.write(reply)
    # Threads that the function left running would keep the process.
    leaving = threading.Timer(GRACE, _end, [0])
    leaving.daemon = True
    leaving.start()


def _called(orders: IO[bytes]) -> _Reply:
    """Call the function that comes in."""
    try:
        function, argument = pickle.load(orders)  # noqa: S301 - from in_fresh_process
        threading.Thread(target=_end_with_parent, args=(orders,), daemon=True).start()
        return _Reply(function(argument))
    except BaseException as error:  # noqa: BLE001 - any error is sent to the parent
        pickled = b""
        with contextlib.suppress(Exception):
            pickled = pickle.dumps(error)
        # Without the frame of this module.
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        summary = "".join(traceback.format_exception_only(error)).strip()
        return _Reply(None, summary, "".join(traceback.format_exception(error)), pickled)


def _end_with_parent(orders: IO[bytes]) -> None:
    """End when the other side closes the pipe, which the system does when that process dies."""
    while os.read(orders.fileno(), 1):
        pass
    _end(1)


def _end(status: int) -> None:
    _end_descendants()
    os._exit(status)


def _end_descendants(pid: int | None = None) -> None:
    """Kill all living descendants of a process, by default of this one."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for descendant in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                descendant.kill()
