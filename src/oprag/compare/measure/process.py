"""Calling a function in its own process: without caches or memory of earlier calls, and isolated from crashes.

Also the check that an experiment can be pickled for another process.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import io
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
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar

from oprag.errors import ExperimentError, MeasurementError

if TYPE_CHECKING:
    from oprag.compare.spec.experiment import Experiment

__all__ = ["check_sendable", "child_main", "in_fresh_process"]

Argument = TypeVar("Argument")
Value = TypeVar("Value")

# The child imports modules from the same paths as this process, regardless of its environment.
START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from oprag.compare.measure.process import child_main; child_main()"
)
SHOWN = 4_000  # bytes of output at the end, for messages
GRACE = 5.0  # seconds to exit after the function has returned


class _ProcessReply(NamedTuple):
    """Return value or error of the function."""

    value: Any = None
    summary: str = ""  # of the error
    trace: str = ""
    error: bytes = b""  # pickled; empty if it cannot be pickled


def in_fresh_process(function: Callable[[Argument], Value], argument: Argument) -> Value:
    """Call a function in a new Python process and return its value.

    The function must be importable; it, its argument and its value are pickled. `__main__` is not run again. The output
    of the function is hidden; if the process dies, the error message has its end.

    The process and its descendants are killed when this call is interrupted (Ctrl-C) or when this process ends for any
    reason. Processes that the function left running are killed when its process exits normally.
    """
    name = function.__qualname__
    # Files rather than pipes, which a process left running by the function could keep open.
    with TemporaryFile() as returned, TemporaryFile() as printed:
        status = _run_process(pickle.dumps((function, argument), pickle.HIGHEST_PROTOCOL), returned, printed)
        returned.seek(0)
        try:
            reply: _ProcessReply = pickle.load(returned)  # noqa: S301 - written by our own process
        except (EOFError, pickle.UnpicklingError):
            raise MeasurementError(_death_message(name, status, printed), name) from None
    if reply.summary:
        raise MeasurementError(
            f"{name} failed in its process: {reply.summary}\n\n{reply.trace}".rstrip(), name
        ) from _unpickled(reply.error)
    value: Value = reply.value
    return value


class _Pickler(pickle.Pickler):
    """Rejects functions and classes of `__main__`, which another process cannot import."""

    def reducer_override(self, value: Any) -> Any:
        """Check functions and classes, which are pickled by name."""
        name = getattr(value, "__qualname__", None)
        if name is not None and getattr(value, "__module__", None) == "__main__":
            raise pickle.PicklingError(f"{name} is defined in the main program instead of an importable module")
        return NotImplemented


def _as_pickle(value: Any) -> bytes:
    """Pickle a value for a process with another main program."""
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def check_sendable(experiment: Experiment, dumps: Callable[[Any], bytes] = _as_pickle) -> None:
    """Raise an error that names the part of an experiment that cannot be pickled, if any."""
    parts: dict[str, Any] = {}
    for noun, given in (("model", experiment.models), ("embedder", experiment.embedders), ("store", experiment.stores)):
        parts |= {f"the {noun} {name!r}": one for name, one in given.items()}
    parts |= {
        f"the metric {name!r}": one for name, one in zip(experiment.metric_names, experiment.metrics, strict=True)
    }
    parts |= {
        "the score embedder": experiment.score_embedder,
        "count_tokens": experiment.count_tokens,
        "a prompt": experiment.prompts,
        "the experiment": experiment,
    }
    for what, part in parts.items():
        try:
            dumps(part)
        except Exception as error:
            raise ExperimentError(
                f"{what} cannot be sent to another process: {error}; use one that can be pickled",
                getattr(part, "use", part),
            ) from error


def _run_process(work: bytes, returned: IO[bytes], printed: IO[bytes]) -> int:
    """Run a process until it ends; return its exit status."""
    process = subprocess.Popen(  # noqa: S603 - runs this interpreter
        [sys.executable, "-c", START, json.dumps(sys.path)], stdin=subprocess.PIPE, stdout=returned, stderr=printed
    )
    stdin: Any = process.stdin
    try:
        # If the process is already dead, its missing reply is reported later.
        with contextlib.suppress(OSError):
            stdin.write(work)
            stdin.flush()
        return process.wait()
    finally:
        if process.poll() is None:
            _end_descendants(process.pid)
            process.kill()
            process.wait()
        # Closed last, since the process ends when its input is closed.
        with contextlib.suppress(OSError):
            stdin.close()


def _death_message(name: str, status: int, printed: IO[bytes]) -> str:
    if status == -getattr(signal, "SIGKILL", 9):
        how = "was killed (SIGKILL), probably by the system because memory ran out"
    elif status < 0:
        how = f"was killed by signal {-status} ({signal.strsignal(-status)})"
    else:
        how = f"exited with status {status} before it returned"
    printed.seek(max(0, printed.seek(0, os.SEEK_END) - SHOWN))
    output = printed.read().decode("utf-8", "replace").strip()
    return f"the process of {name} {how}" + (f"\n\nIts output:\n{output}" if output else "")


def _unpickled(error: bytes) -> BaseException | None:
    """Unpickle an error; None if that fails."""
    try:
        found = pickle.loads(error)  # noqa: S301 - written by our own process
    except Exception:  # noqa: BLE001 - unpickling may run any code and raise anything
        return None
    return found if isinstance(found, BaseException) else None


def child_main() -> None:
    """Entry point of the child process: call the function from standard input, write the reply to standard output.

    From here on, standard output is redirected to standard error, and standard input is empty.
    """
    stdin, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    # On Ctrl-C, exit immediately and silently, even inside compiled code.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    faulthandler.enable()
    # Exit handlers run in reverse order, so this one runs last.
    atexit.register(_end_descendants)
    reply = pickle.dumps(_call(stdin), pickle.HIGHEST_PROTOCOL)
    with results:
        results.write(reply)
    # Threads that the function left running would keep the process alive.
    exit_timer = threading.Timer(GRACE, _end, [0])
    exit_timer.daemon = True
    exit_timer.start()


def _call(stdin: IO[bytes]) -> _ProcessReply:
    """Read the function and its argument, and call it."""
    try:
        function, argument = pickle.load(stdin)  # noqa: S301 - written by in_fresh_process
        threading.Thread(target=_end_with_parent, args=(stdin,), daemon=True).start()
        return _ProcessReply(function(argument))
    except BaseException as error:  # noqa: BLE001 - any error is sent to the parent
        pickled = b""
        with contextlib.suppress(Exception):
            pickled = pickle.dumps(error)
        # Drop the frame of this module.
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        summary = "".join(traceback.format_exception_only(error)).strip()
        return _ProcessReply(None, summary, "".join(traceback.format_exception(error)), pickled)


def _end_with_parent(stdin: IO[bytes]) -> None:
    """Exit when the parent closes the pipe, which the system does if the parent dies."""
    while os.read(stdin.fileno(), 1):
        pass
    _end(1)


def _end(status: int) -> None:
    _end_descendants()
    os._exit(status)


def _end_descendants(pid: int | None = None) -> None:
    """Kill all living descendants of a process; by default, of this one."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for descendant in psutil.Process(pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                descendant.kill()
