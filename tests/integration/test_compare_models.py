"""Models of an experiment: the clients of real packages against a server's faults, and the packaged model."""

import threading
from typing import Any

import pytest

from oprag.compare.providers.specs import ModelSpec
from oprag.errors import OptionError
from oprag.methods.answer import Usage
from oprag.methods.prompts import Message, Prompt
from tests.compare.providers.chat_server import BROKEN, Fault, serve
from tests.helpers import run_python

pytestmark = pytest.mark.integration

PROMPT = Prompt((Message("system", "Be short."), Message("user", "hello")), "answer")
# Nobody has to wait for long.
SOON = {"retry-after-ms": "10"}


@pytest.fixture
def server():
    with serve() as running:
        yield running


def by_name(server: Any, **settings: Any) -> Any:
    return ModelSpec("openai:chat-3", base_url=server.address, **settings).open()


def langchain(server: Any, **settings: Any) -> Any:
    from langchain_openai import ChatOpenAI

    return ModelSpec(ChatOpenAI(model="chat-3", base_url=server.address, api_key="-", max_retries=0), **settings).open()


def llama_index(server: Any, **settings: Any) -> Any:
    from llama_index.llms.openai_like import OpenAILike

    client = OpenAILike(model="chat-3", api_base=server.address, api_key="-", is_chat_model=True, max_retries=0)
    return ModelSpec(client, **settings).open()


CLIENTS = [by_name, langchain, llama_index]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_call(client, server):
    completion = client(server).complete(PROMPT)
    assert completion.error is None
    assert completion.text == "You said: hello"
    assert completion.usage == Usage(7, 5)
    assert completion.finish_reason == "stop"
    assert [message["content"] for message in server.requests[0]["messages"]] == ["Be short.", "hello"]


@pytest.mark.parametrize("status", [429, 500, BROKEN])
def test_a_failure_that_passes_is_retried_by_the_client(server, status):
    server.faults = [Fault(status, SOON)] * 2
    assert by_name(server, max_retries=2).complete(PROMPT).text == "You said: hello"
    assert len(server.requests) == 3


def test_a_server_that_hangs(server):
    server.faults = [Fault(200, after=3)] * 2
    completion = by_name(server, timeout=0.2, max_retries=1).complete(PROMPT)
    assert "Timeout" in type(completion.error).__name__
    assert len(server.requests) == 2


class TestLocal:
    def test_it_answers(self):
        model = ModelSpec("local", max_tokens=8).open()
        completion = model.complete(Prompt((Message("user", "What is the capital of France?"),), "answer"))
        assert completion.error is None
        assert completion.text.strip()
        assert completion.usage is not None
        assert 0 < completion.usage.output_tokens <= 8

    def test_threads_share_one_server(self):
        model = ModelSpec("local", max_tokens=4).open()
        prompts = [Prompt((Message("user", f"Say {number}."),), "answer") for number in range(4)]
        completions: dict[int, Any] = {}
        threads = [
            threading.Thread(target=lambda number=number: completions.update({number: model.complete(prompts[number])}))
            for number in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [completions[number].error for number in range(4)] == [None] * 4

    def test_its_identity(self):
        first = ModelSpec("local").open().identity
        assert first == ModelSpec("local", temperature=0, timeout=3).open().identity
        assert first != ModelSpec("local", temperature=0.5).open().identity
        code = "from oprag.compare.providers.specs import ModelSpec; print(ModelSpec('local').open().identity)"
        assert run_python(code).strip() == first

    @pytest.mark.parametrize("wrong", [{"base_url": "http://host"}, {"model": "m"}, {"temprature": 1}])
    @pytest.mark.filterwarnings("ignore:WARNING. temprature is not default parameter")
    def test_settings_that_it_does_not_know(self, wrong):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            ModelSpec("local", **wrong).open()
