"""The server of a local model: every program of the machine and every page in a browser can reach a loopback port."""

import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from oprag.compare.providers import chat_models


class _Model:
    """In place of `xllamacpp`: a server that notes with which key it was started and with which it is asked."""

    def __init__(self) -> None:
        self.parameters: list[Any] = []
        self.asked: list[str | None] = []
        self.addresses: list[str] = []

    def start(self, parameters: Any) -> Any:
        self.parameters.append(parameters)
        return SimpleNamespace(listening_address=self.addresses[0])

    @property
    def keys(self) -> list[str]:
        """The keys of the servers that were started."""
        assert all(len(parameters.api_keys) == 1 for parameters in self.parameters)
        return [parameters.api_keys[0] for parameters in self.parameters]


@contextmanager
def _listening(model):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            model.asked.append(self.headers.get("Authorization"))
            body = b"[]"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        model.addresses.append(f"http://127.0.0.1:{server.server_address[1]}")
        yield
        server.shutdown()
        thread.join()


@pytest.fixture
def model(monkeypatch, tmp_path):
    model = _Model()
    module: Any = ModuleType("xllamacpp")
    module.Server = model.start
    module.CommonParams = lambda: SimpleNamespace(
        model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace(), api_keys=[]
    )
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    monkeypatch.setattr(chat_models, "local_model_file", lambda: tmp_path / "model.gguf")
    chat_models._server.cache_clear()
    with _listening(model):
        yield model
    chat_models._server.cache_clear()


@pytest.fixture
def clients(monkeypatch):
    """The settings of each client that is made."""
    made: list[dict[str, Any]] = []
    module: Any = ModuleType("langchain_openai")
    module.ChatOpenAI = lambda **settings: made.append(settings)
    monkeypatch.setitem(sys.modules, "langchain_openai", module)
    return made


def test_every_server_has_a_random_key_that_its_own_clients_send(model):
    for _ in range(2):
        chat_models._server.cache_clear()
        chat_models._server()
    assert len(model.keys) == len(set(model.keys)) == 2
    assert min(map(len, model.keys)) >= 32
    assert set(model.asked) == {f"Bearer {key}" for key in model.keys}


def test_the_client_of_the_packaged_model_has_the_key_and_shows_it_nowhere(model, clients):
    chat_models.local_model()
    chat_models.local_model()
    (key,) = model.keys
    assert [settings["api_key"] for settings in clients] == [key] * 2
    assert key not in repr(chat_models._server())


def test_one_request_cannot_keep_a_server_for_good(model, clients):
    """Neither by writing on past the window, nor by a connection that says nothing; nor does a client wait forever."""
    chat_models.local_model()
    assert clients[0]["timeout"] > 0
    for parameters in model.parameters:
        assert parameters.ctx_shift is False
        assert 0 < parameters.timeout_read <= 60
        assert 0 < parameters.timeout_write <= 60
