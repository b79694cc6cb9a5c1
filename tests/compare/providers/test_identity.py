import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from langchain_core.language_models import FakeListChatModel
from llama_index.core import PromptTemplate
from pydantic import BaseModel, SecretStr

from oprag.compare.providers.specs import ModelSpec
from tests.cli import provider
from tests.compare.helpers import rows
from tests.compare.providers.hosted import SECRET, Completing, Hosted
from tests.reader import ROOT


def identity(**settings):
    return ModelSpec(Hosted(**settings)).open().identity


def test_it_says_which_model_it_is_and_no_secret():
    assert identity().startswith("tests.compare.providers.hosted.Hosted(chat-3) ")
    assert SECRET not in identity()
    assert SECRET not in identity(model=f"https://me:{SECRET}@host/models/a?key={SECRET}")
    assert ModelSpec(Hosted(), "another name").open().identity == identity()


@pytest.mark.parametrize(
    "change",
    [
        {"model": "chat-4"},
        {"temperature": 0.0},
        {"temperature": None},
        {"base_url": "https://other:8080/v1?version=2"},
        {"base_url": "https://host:9090/v1?version=2"},
        {"base_url": "https://host:8080/v1?version=3"},
        {"base_url": None},
        {"model_kwargs": {"logit_bias": {"5": -1}}},
        {"stop": ["."]},
    ],
    ids=str,
)
def test_another_setting_is_another_model(change):
    assert identity(**change) != identity()
    assert identity(**change) == identity(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"api_key": SecretStr("another")},
        {"api_key": None},
        {"base_url": "https://you:changed@host:8080/v1?api_key=other&version=2"},
        {"default_headers": {}},
        {"model_kwargs": {"api_key": "x"}},
        {"max_retries": 7},
        {"timeout": 3.0},
        {"client": None},
        {"profile": {"max_input_tokens": 9}},
        {"name": "mine"},
        {"tags": ["a"]},
        {"verbose": True},
        {"disable_streaming": True},
    ],
    ids=str,
)
def test_what_changes_no_reply_changes_nothing(change):
    assert identity(**change) == identity()


def test_where_its_client_sends_to_counts():
    def at(address):
        return identity(client=SimpleNamespace(base_url=address), base_url=None)

    assert at("https://host/v1") == at("https://host/v1") != at("https://other/v1")


class Reply(BaseModel):
    text: str


class LongReply(BaseModel):
    text: str
    reason: str


def test_what_is_bound_to_a_model_counts():
    bound = [
        identity(),
        *(ModelSpec(Hosted().bind(stop=[mark]), "m").open().identity for mark in (".", "!")),
        *(ModelSpec(Hosted().bind(response_format=kind), "m").open().identity for kind in (Reply, LongReply)),
        ModelSpec(Hosted(model="chat-4").bind(stop=["."]), "m").open().identity,
    ]
    assert len(set(bound)) == len(bound)
    assert ModelSpec(Hosted().bind(stop=["."]), "m").open().identity == bound[1]


def test_a_model_without_a_name_is_known_by_the_given_one_and_its_settings():
    fake = FakeListChatModel(responses=["a", "b"])
    before = ModelSpec(fake, "m").open().identity
    fake.invoke("hello")
    assert ModelSpec(fake, "m").open().identity == before
    assert ModelSpec(FakeListChatModel(responses=["a"]), "m").open().identity != before


def test_models_of_llama_index():
    first = ModelSpec(Completing()).open().identity
    assert first.startswith("tests.compare.providers.hosted.Completing(writer-1) ")
    assert ModelSpec(Completing(temperature=0.5)).open().identity != first
    assert ModelSpec(Completing(system_prompt="Be short.")).open().identity != first
    assert (
        ModelSpec(Completing(query_wrapper_prompt=PromptTemplate("{query_str}!"), name="n"), "n").open().identity
        != first
    )
    # Functions of one's own may change, and nobody would see it.
    assert (
        ModelSpec(Completing(completion_to_prompt=lambda text: text), "own").open().identity.endswith("Completing(own)")
    )


def test_models_by_name_are_known_by_their_settings_and_the_servers_of_their_provider(monkeypatch):
    provider.install(monkeypatch)
    for variable in ("GROQ_BASE_URL", "MISTRAL_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)

    def named(use="groq:cranes", planned=True, **settings):
        return ModelSpec(use, **settings).open(planned=planned).identity

    first = named(temperature=0)
    assert first.startswith("groq:cranes ")
    # A plan counts the answers that a run would find.
    assert named(planned=False, temperature=0) == first
    assert named(temperature=0, api_key=SECRET, max_retries=9, timeout=3, max_tokens=None) == first
    others = [named("groq:empty", temperature=0), named(temperature=1), named(temperature=0, base_url="http://a/")]
    assert len({first, *others}) == 4
    monkeypatch.setenv("GROQ_API_KEY", SECRET)
    monkeypatch.setenv("MISTRAL_BASE_URL", "http://elsewhere/")
    assert named(temperature=0) == first
    monkeypatch.setenv("GROQ_BASE_URL", f"http://me:{SECRET}@elsewhere/")
    elsewhere = named(temperature=0)
    monkeypatch.setenv("GROQ_BASE_URL", "http://me:another-one@elsewhere/")
    assert named(temperature=0) == elsewhere != first


SCRIPT = """
from pathlib import Path

from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListLLM

from oprag.compare import EmbedderSpec, Experiment, compare, metric
from tests.compare.helpers import keepers

def asked():
    with (Path(__file__).parent / "asked").open("a") as log:
        log.write("once more\\n")
    return "Jetty"

class Reader:
    def __call__(self, text):
        return asked()

class Writer(FakeListLLM):
    model: str = "writer-1"
    responses: list[str] = []

    def _call(self, prompt, **others):
        return asked()

class Embeddings(DeterministicFakeEmbedding):
    size: int = 8

@metric()
def length(one):
    return len(one.answer)

def count(text):
    return len(text)

experiment = Experiment(
    name="harbour",
    grid={"k": [2, 4], "model": ["reader", "writer"], "chunk_size": 32},
    data={"keepers": keepers(documents=1)},
    models={"reader": Reader(), "writer": Writer()},
    embedders={"mine": EmbedderSpec(Embeddings(), "mine", paid=False)},
    metrics=["token_f1", length],
    count_tokens=count,
)

if __name__ == "__main__":
    compare(experiment, Path(__file__).parent / "harbour.db")
"""


@pytest.mark.process
@pytest.mark.parametrize(
    ("first", "then"),
    [
        (["harbour.py"], ["-c", "from oprag.cli import main; main()", "compare", "harbour.py:experiment"]),
        (["-m", "harbour"], ["harbour.py"]),
        (["-m", "pier.harbour"], ["-c", "from pier import harbour as h; h.compare(h.experiment, 'pier/harbour.db')"]),
        (["-m", "pier"], ["-c", "from pier import __main__ as h; h.compare(h.experiment, 'pier/harbour.db')"]),
    ],
    ids=["command line", "module", "module of a package", "package"],
)
def test_a_script_and_the_same_module_share_replies(tmp_path, first, then):
    for path in ("harbour.py", "pier/__init__.py", "pier/harbour.py", "pier/__main__.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("" if path.endswith("__init__.py") else SCRIPT)
    made = []
    for arguments in (first, then):
        result = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            # The script imports helpers of the tests.
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        calls = sum(log.read_text().count("\n") for log in tmp_path.rglob("asked"))
        made.append((calls, rows(next(tmp_path.rglob("harbour.db")), "SELECT count(*) FROM results")))
    assert made == [(12, [(12,)])] * 2
