"""A small chat model behind an OpenAI-compatible server, here or, as a program, in a process that can be killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import httpx

from oprag.compare.providers.chat_models import LlamaServer, llama_parameters, local_model_file, start_llama_server

SLOTS = 2
WINDOW = 4_096  # tokens, of each slot
LONGEST_REPLY = 16  # tokens, where a request names no other number
KEY = "-"  # what clients send to servers that want no key
ENDLESS = 2_000  # tokens; nobody waits until they are written


def serve(port: int = 0, *, endless: bool = False) -> LlamaServer:
    """A server that stops when nothing holds it any more; port 0 takes a free one.

    An endless one does not stop writing where a reply would end, for clients that cannot ask for that themselves.
    """
    # Two threads wait for each other at every layer: on two cores that others use too, they take ten times as long.
    parameters = llama_parameters(local_model_file(), SLOTS * WINDOW, threads=1)
    parameters.n_parallel = SLOTS
    parameters.n_predict = ENDLESS if endless else LONGEST_REPLY
    parameters.sampling.ignore_eos = endless
    parameters.port = port
    parameters.api_keys = [KEY]
    return start_llama_server(parameters)


class MortalServer:
    """The server in a process of its own, always on the same port."""

    def __init__(self, *, endless: bool = False) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._endless = endless
        self.address = ""
        self.start()

    @property
    def alive(self) -> bool:
        return self._process is not None

    @property
    def working(self) -> int:
        """How many requests it is reading or answering."""
        slots = httpx.get(f"{self.address}/slots", headers={"Authorization": f"Bearer {KEY}"}, timeout=60).json()
        return sum(slot["is_processing"] for slot in slots)

    def start(self) -> None:
        """Start it, or start it again."""
        port = self.address.rpartition(":")[2]
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, port or "0", *(["endless"] if self._endless else [])],
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
    _, port, *rest = sys.argv
    server = serve(int(port), endless="endless" in rest)
    print(server.address, flush=True)  # noqa: T201
    # Until whoever started it closes the pipe, or ends.
    sys.stdin.read()
