import pytest
from llama_index.core import PromptTemplate
from pydantic import BaseModel, SecretStr

from oprag.compare.providers.model import as_model
from tests.compare.providers.hosted import SECRET, Completing, Hosted
from tests.helpers import run_python


def identity(**settings):
    return as_model(Hosted(**settings)).identity


def test_it_says_which_model_it_is_and_no_secret():
    assert identity().startswith("tests.compare.providers.hosted.Hosted(chat-3) ")
    assert SECRET not in identity()
    assert SECRET not in identity(model=f"https://me:{SECRET}@host/models/a?key={SECRET}")
    assert as_model(Hosted(), "another name").identity == identity()


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


def test_a_setting_that_an_older_version_did_not_know():
    class Hosted2(Hosted):
        """As a later version of the package has it."""

        another: str | None = None

    Hosted2.__module__, Hosted2.__qualname__ = Hosted.__module__, Hosted.__qualname__
    assert as_model(Hosted2()).identity == identity()
    assert as_model(Hosted2(another="x")).identity != identity()


class Reply(BaseModel):
    text: str


class LongReply(BaseModel):
    text: str
    reason: str


def test_what_is_bound_to_a_model_counts():
    bound = [
        identity(),
        *(as_model(Hosted().bind(stop=[mark])).identity for mark in (".", "!")),
        *(as_model(Hosted().bind(response_format=kind)).identity for kind in (Reply, LongReply)),
    ]
    assert len(set(bound)) == len(bound)
    assert as_model(Hosted().bind(stop=["."])).identity == bound[1]


def test_where_its_client_sends_to_counts():
    class Client:
        def __init__(self, base_url):
            self.base_url = base_url

    def at(address):
        return identity(client=Client(address), base_url=None)

    assert at("https://host/v1") == at(f"https://me:{SECRET}@host/v1") != at("https://other/v1")


def test_models_of_llama_index():
    first = as_model(Completing()).identity
    assert first.startswith("tests.compare.providers.hosted.Completing(writer-1) ")
    assert as_model(Completing(temperature=0.5)).identity != first
    assert as_model(Completing(system_prompt="Be short.")).identity != first
    assert as_model(Completing(query_wrapper_prompt=PromptTemplate("{query_str}!"), name="n"), "n").identity != first
    # Functions of one's own may change, and nobody would see it.
    assert as_model(Completing(completion_to_prompt=lambda text: text), "own").identity.endswith("Completing(own)")


@pytest.mark.process
def test_it_is_the_same_in_every_process():
    code = (
        "from oprag.compare.providers.model import as_model\n"
        "from tests.compare.providers.hosted import Hosted, Completing\n"
        "for model in (Hosted(), Completing(), Hosted().bind(stop=['.'])): print(as_model(model).identity)"
    )
    models = (Hosted(), Completing(), Hosted().bind(stop=["."]))
    assert run_python(code, PYTHONHASHSEED="1") == "".join(f"{as_model(model).identity}\n" for model in models)


def test_functions_of_other_names_are_other_models_whatever_they_are_called():
    quick = as_model("tests.compare.answering:quick", "m").identity
    assert as_model("tests.compare.providers.test_identity:echo", "m").identity != quick
    assert as_model("tests.compare.answering:quick", "n").identity != quick
    assert as_model("tests.compare.answering:quick", "m").identity == quick


def echo():
    return lambda prompt: prompt
