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
from tests.compare.folders import write_data
from tests.security.fuzzing import cases, check_message, mutated

EXPERIMENT = '''\
name = "all of it"
metrics = ["token_f1", "evidence_coverage", "correct"]
count_tokens = "words"
score_embedder = "local"
max_concurrency = 3
give_up_after = 7
[data.book]
path = "data/questions.jsonl"
format = "oprag"
sample = 1
seed = 5
[data.other]
path = "data"
sample = 1
[models.quick]
use = "openai:gpt-5-mini"
temperature = 0
max_tokens = 50
base_url = "http://localhost:1/v1"
max_retries = 4
[models.small]
use = "local"
[embedders.first]
use = "local"
question_prefix = "Find: "
tokenizer = "local"
[prompts]
answer = """
{context}
{question}"""
[judges.correct]
model = "quick"
prompt = "{question} {answers} {answer}"
grades = {good = 1, bad = 0}
[prices.quick]
input = 0.15
output = 0.60
[prices.small]
input = 0
output = 0
[limits]
calls = 10_000
money = 10.0
[[grid]]
method = ["stuff", "closed_book"]
order = ["source", "random"]
seed = [1, 2]
k = 2
similarity_threshold = ["none", 0.3]
header = "[{source}]"
data = "book"
model = "quick"
[[grid]]
method = "context_only"
store = "index"
k = 2
stitch = false
'''
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
            path.write_bytes(mutated(EXPERIMENT, random.Random(seed), KEYS, TABLES))
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
