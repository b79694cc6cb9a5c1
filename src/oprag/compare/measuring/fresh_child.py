"""The other side of `in_fresh_process`: reads what to run, runs it, and sends back what came of it."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import os
import pickle
import signal
import threading
import traceback
from typing import NamedTuple

__all__ = ["SIZE_BYTES", "Raised", "Returned", "end_descendants", "main"]

SIZE_BYTES = 8


class Returned(NamedTuple):
    """The function returned.

    Attributes:
        value: The pickled value.
    """

    value: bytes


class Raised(NamedTuple):
    """The function raised, or its value cannot be pickled.

    Attributes:
        summary: The error in one line.
        trace: The traceback as text.
        error: The pickled error, or nothing where it cannot be pickled.
    """

    summary: str
    trace: str
    error: bytes


def main() -> None:
    """Run one pickled function with its argument, from standard input to standard output.

    Either way a pickle follows its own length in bytes. From here on, what is printed goes to standard error, and
    standard input is empty.
    """
    orders, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):
        # A forked process that held them open would outlive this one unseen.
        os.register_at_fork(after_in_child=orders.close)
        os.register_at_fork(after_in_child=results.close)
    # Ends at once, in the middle of compiled code too, and prints nothing.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faulthandler.enable()
    # What is registered first runs last.
    atexit.register(end_descendants)
    work = orders.read(int.from_bytes(orders.read(SIZE_BYTES), "big"))
    threading.Thread(target=_end_with_parent, args=(orders.fileno(),), daemon=True).start()
    reply = pickle.dumps(_run(work))
    with results:
        results.write(len(reply).to_bytes(SIZE_BYTES, "big") + reply)


def _run(work: bytes) -> Returned | Raised:
    try:
        function, argument = pickle.loads(work)  # noqa: S301 - from in_fresh_process
        value = function(argument)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
        return _raised(error, "")
    try:
        return Returned(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    except Exception as error:  # noqa: BLE001 - objects pickle themselves, and may raise anything
        return _raised(error, f"the value that it returned, a {type(value).__name__}, cannot be pickled: ")


def _raised(error: BaseException, before: str) -> Raised:
    pickled = b""
    with contextlib.suppress(Exception):
        pickled = pickle.dumps(error)
    if error.__traceback__ is not None:
        # Without the frame of this module.
        error = error.with_traceback(error.__traceback__.tb_next)
    trace = "".join(traceback.format_exception(error))
    summary = before + "".join(traceback.format_exception_only(error)).strip()
    return Raised(summary, trace, pickled)


def _end_with_parent(orders: int) -> None:
    """Wait until the other side closes the pipe, which the system does when that process dies, and end too."""
    while os.read(orders, 1):
        pass
    end_descendants()
    os._exit(1)


def end_descendants(pid: int | None = None) -> None:
    """Kill all descendants of a process, this one if none is named, as far as they are still there."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for descendant in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                descendant.kill()
