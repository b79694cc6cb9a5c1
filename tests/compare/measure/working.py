"""Work with a known cost, to be imported by a process of its own."""

from __future__ import annotations

import hashlib
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from oprag.compare.measure import process
from oprag.compare.measure.usage import ResourceUsage, measure_usage

MB = 1_000_000
SLEEPER = [sys.executable, "-c", "import time; time.sleep(120)"]
called: list[Any] = []


def fill(size: int, seconds: float = 0.0) -> None:
    """Hold so many bytes of memory, each page of it touched, and give them back to the system."""
    with mmap.mmap(-1, size) as memory_map:
        for place in range(0, size, mmap.PAGESIZE):
            memory_map[place] = 1
        time.sleep(seconds)


def burn(seconds: float) -> None:
    """Use so much processor time in this thread, nearly all of it where other threads may run."""
    text, start = bytes(100_000), time.thread_time()
    while time.thread_time() - start < seconds:
        hashlib.sha256(text)


def burn_in_threads(threads: int, seconds: float) -> None:
    """The same in several threads at the same time."""
    running = [threading.Thread(target=burn, args=(seconds,)) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def run_child(work: str) -> None:
    """Do work of this module in a process below this one, and wait for it."""
    subprocess.run([sys.executable, "-c", f"from tests.compare.measure.working import *; {work}"], check=True)


def measure_a_child(work: str) -> ResourceUsage[None]:
    return measure_usage(lambda: run_child(work))


def measure_after_a_peak(size: int) -> ResourceUsage[None]:
    fill(400 * MB)
    return measure_usage(lambda: fill(size, 0.5))


def twice(number: int) -> int:
    called.append(number)
    return 2 * number


def calls(_: object) -> list[Any]:
    return called


def print_much(lines: int) -> str:
    sys.stdout.write("a line of what it prints\n" * lines)
    os.write(1, b"and past Python's own files\n")
    return "the value"


def read_input(_: object) -> str:
    return sys.stdin.read()


class OwnError(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


def fail(message: str) -> None:
    raise KeyError(message)


def fail_with_what_cannot_be_unpickled(message: str) -> None:
    raise OwnError(message, " and more")


def leave(status: int) -> None:
    sys.exit(status)


def return_what_cannot_be_pickled(_: object) -> Any:
    return threading.Lock()


def die(number: int) -> None:
    os.write(1, b"last words")
    os.kill(os.getpid(), number)
    time.sleep(60)


def exit_at_once(status: int) -> None:
    os._exit(status)


def crash_after_returning(value: int) -> int:
    import atexit

    atexit.register(os.kill, os.getpid(), signal.SIGKILL)
    return value


def hang_after_returning(value: int) -> int:
    process.GRACE = 0.5
    threading.Thread(target=time.sleep, args=(120,)).start()
    return value


def need_too_much(size: int) -> int:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    return len(bytearray(2 * size))


def sleep_beside_a_child(path: str) -> None:
    """Write down the process ids of this process and of a child of it, and do nothing."""
    child = subprocess.Popen(SLEEPER)
    Path(path).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(120)


def leave_a_child(_: object) -> int:
    return subprocess.Popen(SLEEPER).pid


def die_beside_a_fork(path: str) -> None:
    """Die while a fork, which has copies of all open files, lives on; its process id is written down."""
    fork = os.fork()
    if fork == 0:
        time.sleep(120)
        os._exit(0)
    Path(path).write_text(str(fork))
    os.kill(os.getpid(), signal.SIGKILL)


def gone(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process ends within this time."""
    try:
        psutil.Process(pid).wait(seconds)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True
