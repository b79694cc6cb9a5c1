"""Running a function in a process of its own: no caches, no memory of earlier calls, and its end is not ours."""

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
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from numbers import Real
from typing import Any, NamedTuple, TypeVar

from oprag.errors import MeasuringError, MissingExtraError, OptionError
from oprag.masking import describe

__all__ = ["SIZE_BYTES", "Raised", "Returned", "check_installed", "child_main", "end_descendants", "in_fresh_process"]

Argument = TypeVar("Argument")
Value = TypeVar("Value")

# Modules are looked for where they are looked for here, whatever the environment says.
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from oprag.compare.measure.process import child_main; child_main()"
)
SHOWN = 4_000  # bytes of what a process printed before it died
GRACE = 5.0  # seconds that it has to end after its value has come


def in_fresh_process(
    function: Callable[[Argument], Value],
    argument: Argument,
    *,
    timeout: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> Value:
    """Call a function in a new Python process, and return what it returns.

    The function, its argument and its value travel as pickles. Nothing is written to disk, and the module `__main__`
    is not run again. What the function prints is not shown; the end of it is in the message if the process dies.

    The process is killed with its descendants when its time is over and when this call is interrupted (Ctrl-C), and
    it ends by itself when this process does, however that ends. Processes that the function left running are killed
    when its process ends in order.

    Args:
        function: A function of a module that can be imported; none of `__main__`, no lambda.
        argument: Its one argument.
        timeout: Seconds that the process may take, its start included; None for as long as it takes.
        environment: Environment variables to set for it above those of this process, before any module is loaded,
            such as `{"OPENBLAS_NUM_THREADS": "1"}`.

    Raises:
        OptionError: The function or the argument cannot be pickled, or an option has a value that it cannot have.
        MissingExtraError: The extra `measure` is not installed.
        MeasuringError: The function raised (its traceback is in the message, and the error itself is the cause where
            it can be pickled), its value cannot be pickled, the process was killed or crashed, or its time was over.
    """
    check_installed()
    name = getattr(function, "__qualname__", repr(function))
    work = _pickled(function, argument, name)
    if timeout is not None and not (isinstance(timeout, Real) and type(timeout) is not bool and timeout > 0):
        raise OptionError(f"timeout must be a number of seconds over 0, or None, got {describe(timeout)}", timeout)
    fresh = _FreshProcess(_with(environment), timeout)
    try:
        reply = fresh.ask(work)
    finally:
        fresh.end()
    if reply is None:
        raise MeasuringError(fresh.obituary(name), name)
    if isinstance(reply, Raised):
        raise MeasuringError(
            f"{name} failed in a process of its own: {reply.summary}\n\n{reply.trace}".rstrip(), name
        ) from _unpickled(reply.error)
    try:
        value: Value = pickle.loads(reply.value)  # noqa: S301 - of a process of our own
    except Exception as error:
        raise MeasuringError(f"what {name} returned cannot be unpickled here: {error}", name) from error
    return value


def check_installed() -> None:
    """Refuse to measure without what that needs.

    Raises:
        MissingExtraError: The extra `measure` is not installed.
    """
    if find_spec("psutil") is None:
        raise MissingExtraError("Measuring", "measure")


class _FreshProcess:
    """A process that runs one function, with what it takes to know how it ended."""

    def __init__(self, environment: Mapping[str, str], timeout: float | None) -> None:
        self._timeout = timeout
        self._overdue = False
        self._printed = b""
        self._process = subprocess.Popen(  # noqa: S603 - this very interpreter
            [sys.executable, "-c", START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        self._reader = threading.Thread(target=self._read_printed, daemon=True)
        self._reader.start()
        self._timer = threading.Timer(timeout or 0, self._expire)
        self._timer.daemon = True
        if timeout is not None:
            self._timer.start()

    def ask(self, work: bytes) -> Any:
        """What came of the work, or None if the process died before it said that."""
        orders: Any = self._process.stdin
        results: Any = self._process.stdout
        # It is told at once if the process dies, but reading the results tells that as well.
        with contextlib.suppress(OSError):
            orders.write(len(work).to_bytes(SIZE_BYTES, "big") + work)
            orders.flush()
        size = results.read(SIZE_BYTES)
        reply = results.read(int.from_bytes(size, "big"))
        complete = len(size) == SIZE_BYTES and len(reply) == int.from_bytes(size, "big")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        return pickle.loads(reply) if complete else None  # noqa: S301 - of a process of our own

    def end(self) -> None:
        """Kill it with its descendants if it still runs, and leave nothing of it."""
        self._timer.cancel()
        self._kill()
        self._process.wait()
        # A process that it left behind may hold the pipe open.
        self._reader.join(1)
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        self._process.stdout.close()  # type: ignore[union-attr]

    def obituary(self, name: str) -> str:
        """How it died."""
        status = self._process.returncode
        if self._overdue:
            how = f"was not ready after {self._timeout:g} s and was killed; give it a longer timeout, or less to do"
        elif status == -getattr(signal, "SIGKILL", 9):
            how = "was killed (SIGKILL), which is what the system does when memory runs out"
        elif status < 0:
            how = f"was killed by signal {-status} ({signal.strsignal(-status)})"
        else:
            how = f"ended with status {status} before it returned"
        printed = self._printed.decode("utf-8", "replace").strip()
        return f"the process of {name} {how}" + (f"\n\nIt had printed:\n{printed}" if printed else "")

    def _expire(self) -> None:
        self._overdue = True
        self._kill()

    def _kill(self) -> None:
        if self._process.poll() is None:
            end_descendants(self._process.pid)
            self._process.kill()

    def _read_printed(self) -> None:
        pipe: Any = self._process.stderr
        with pipe:
            while piece := pipe.read1(SHOWN):
                self._printed = (self._printed + piece)[-SHOWN:]


def _pickled(function: Any, argument: Any, name: str) -> bytes:
    if getattr(function, "__module__", None) == "__main__":
        raise OptionError(
            f"another process cannot import {name} from the program that was started; put it into a module", function
        )
    try:
        return pickle.dumps((function, argument), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise OptionError(
            f"{name} and its argument must be such that they can be pickled, a function of a module and plain data: "
            f"{error}",
            function,
        ) from error


def _unpickled(error: bytes) -> BaseException | None:
    """The error itself, or None where it cannot be had."""
    try:
        found = pickle.loads(error)  # noqa: S301 - of a process of our own
    except Exception:  # noqa: BLE001 - objects unpickle themselves, and may raise anything
        return None
    return found if isinstance(found, BaseException) else None


def _with(environment: Mapping[str, str] | None) -> dict[str, str]:
    variables: Mapping[Any, Any] = environment or {}
    for name, value in variables.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise OptionError(f"environment must hold strings, got {describe(name)}: {describe(value)}", environment)
    return {**os.environ, **variables}


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


def child_main() -> None:
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
