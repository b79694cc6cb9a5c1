import json
import os
import subprocess
import sys

import pytest
from llama_index.core import PromptTemplate
from pydantic import BaseModel, SecretStr
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from oprag import LocalEmbedder, split_tokens
from oprag.compare.providers.identity import counter_of
from oprag.compare.providers.model import ModelSpec
from oprag.errors import OpragError, TokenizerError
from oprag.index.tokenizers import tokenizer_named
from tests.cli import provider
from tests.compare.helpers import rows
from tests.compare.providers.hosted import SECRET, Completing, Hosted
from tests.helpers import run_python
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
        {"base_url": "https://host:8080/v1?version=2"},
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


class Reply(BaseModel):
    text: str


class LongReply(BaseModel):
    text: str
    reason: str


def test_what_is_bound_to_a_model_counts():
    bound = [
        identity(),
        *(ModelSpec(Hosted().bind(stop=[mark])).open().identity for mark in (".", "!")),
        *(ModelSpec(Hosted().bind(response_format=kind)).open().identity for kind in (Reply, LongReply)),
    ]
    assert len(set(bound)) == len(bound)
    assert ModelSpec(Hosted().bind(stop=["."])).open().identity == bound[1]


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
    monkeypatch.setenv("GROQ_BASE_URL", "http://elsewhere/")
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
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        calls = sum(log.read_text().count("\n") for log in tmp_path.rglob("asked"))
        made.append((calls, rows(next(tmp_path.rglob("harbour.db")), "SELECT count(*) FROM results")))
    assert made == [(12, [(12,)])] * 2


TEXT = "The harbour of Aldmere has nine cranes."


@pytest.fixture
def folder(tmp_path):
    """A tokenizer of words, with everything that a count must not be changed by."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "[CLS]": 1, "harbour": 2, "[PAD]": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=100, pad_id=3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@pytest.fixture
def encoding(tmp_path, monkeypatch):
    """An encoding that tiktoken finds as it finds all others, and need not fetch."""
    (tmp_path / "tiktoken_ext").mkdir()
    (tmp_path / "tiktoken_ext" / "small.py").write_text(
        "def small():\n"
        "    ranks = {bytes([number]): number for number in range(256)} | {b'he': 256, b'the': 257}\n"
        "    return {'name': 'small', 'pat_str': r'\\w+|\\W+', 'mergeable_ranks': ranks,\n"
        "            'special_tokens': {'<|end|>': 300}}\n"
        "ENCODING_CONSTRUCTORS = {'small': small}\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")
    return "tiktoken:small"


@pytest.mark.parametrize(("name", "tokens"), [("approximate", 10), ("words", 7), ("characters", 39), ("local", None)])
def test_what_comes_with_the_package(name, tokens):
    expected = LocalEmbedder().count_tokens(TEXT) if tokens is None else tokens
    counter = counter_of(name)
    assert counter(TEXT) == expected
    assert counter.name == name
    assert counter("") == 0
    assert counter(TEXT + "\ud800") >= expected


def test_a_folder_and_a_file_of_hugging_face(folder):
    counter = counter_of(f"huggingface:{folder}")
    # Eight, though it cuts off behind four, fills up to a hundred and puts one before.
    assert counter(TEXT) == 8
    assert counter("harbour \ud800") == 2
    assert counter_of(f"huggingface:{folder / 'tokenizer.json'}").identity == counter.identity
    windows = split_tokens(TEXT, tokenizer_named(f"huggingface:{folder}").tokenizer, chunk_size=3)
    assert [window.text for window in windows] == ["The harbour of ", "Aldmere has nine ", "cranes."]


def test_it_is_known_by_what_it_holds(folder, tmp_path):
    first = counter_of(f"huggingface:{folder}").identity
    copy = tmp_path / "copy"
    copy.mkdir()
    content = json.loads((folder / "tokenizer.json").read_text())
    (copy / "tokenizer.json").write_text(json.dumps(content | {"truncation": None}))
    assert counter_of(f"huggingface:{copy}").identity == first
    other = tmp_path / "other"
    other.mkdir()
    content["model"]["vocab"]["cranes"] = 4
    (other / "tokenizer.json").write_text(json.dumps(content))
    assert counter_of(f"huggingface:{other}").identity != first


def test_an_encoding_of_tiktoken(encoding):
    code = (
        "from oprag.compare.providers.identity import counter_of\n"
        "from oprag import split_tokens; from oprag.index.tokenizers import tokenizer_named\n"
        f"counter = counter_of({encoding!r})\n"
        "print(counter('the he <|end|>'), counter.identity)\n"
        f"windows = split_tokens('the theme', tokenizer_named({encoding!r}).tokenizer, chunk_size=3)\n"
        "print([window.text for window in windows])"
    )
    assert run_python(code).splitlines() == ["11 tiktoken(small)", "['the the', 'me']"]


def test_a_function_is_known_by_its_name():
    counter = counter_of(by_tens)
    assert counter(TEXT) == 4
    assert counter.identity == f"named {__name__}:by_tens"
    with pytest.raises(TokenizerError, match="got -1"):
        counter_of(negative)(TEXT)


def by_tens(text):
    return len(text) / 10


def negative(text):
    return -1


@pytest.mark.parametrize(
    "wrong", ["", "word", "tiktoken:", "huggingface: ", "nobody:count", None, 3, str, "x".count, ":", "a:b:c"]
)
def test_what_is_no_counter(wrong):
    with pytest.raises(OpragError, match=r"must be .*one of approximate|method"):
        counter_of(wrong)
