"""Mutated experiment files: each is read and planned, or refused with an error of ours.

Whatever it says, nothing that it names is imported, run, called over the network, or read outside its folder.
"""

import random
import resource
import signal
import sys

import pytest

from oprag.compare.experiment import Experiment
from oprag.compare.plan import make_plan
from oprag.errors import OpragError
from tests.compare.folders import EVERYTHING, write_data
from tests.security.fuzzing import cases, check_message, mutated

KEYS = [
    "use",
    "base_url",
    "openai_proxy",
    "api_key",
    "model_kwargs",
    "trust_remote_code",
    "path",
    "documents",
    "tokenizer",
]
TABLES = [
    "[models.quick]",
    "[embedders.first]",
    "[stores.x]",
    "[score_embedder]",
    "[data.book]",
    "[stores]",
    "[models]",
]
DONE = {"os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect", "socket.getaddrinfo"}
SECONDS, MEBIBYTES = 20, 1_024  # of processor time for one file; above what the tests before took


class Watch:
    """What Python reports of programs, connections, and files of the secret folder, while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        # A hook stays for as long as the process.
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.on and (event in DONE or (event == "open" and "secret" in str(arguments[0]))):
            self.seen.append(f"{event} {arguments[:1]}")


def overdue(*_: object) -> None:
    raise AssertionError(f"it took more than {SECONDS} s of processor time")


def peak() -> float:
    """The memory that this process has had at most, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with data, beside a secret, where evil modules can be imported."""
    (tmp_path / "secret").mkdir()
    for name in ("evil", "package/__init__"):
        module = tmp_path / f"{name}.py"
        module.parent.mkdir(exist_ok=True)
        module.write_text("raise SystemExit('imported')")
    folder = tmp_path / "sent"
    write_data(folder / "data")
    write_data(tmp_path / "secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / ".env").write_text("KEY=secret")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(folder)
    return folder


def test_mutated_experiment_files_are_planned_or_refused(folder):
    watch = Watch()
    before = signal.signal(signal.SIGPROF, overdue)
    path = folder / "x.toml"
    read = planned = 0
    memory = peak()
    try:
        for seed in range(cases()):
            path.write_bytes(mutated(EVERYTHING, random.Random(seed), KEYS, TABLES))
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            watch.on = True
            try:
                experiment = Experiment.from_file(path)
                read += 1
                make_plan(experiment)
                planned += 1
            except OpragError as error:
                check_message(error, seed)
            finally:
                watch.on = False
            assert watch.seen == [], seed
            assert not {"evil", "package"} & {*sys.modules}, seed
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert peak() - memory < MEBIBYTES
    # Some are still experiments, so that more than the reader of TOML is tried.
    assert 0 < planned <= read < cases()
