"""Retries, over the errors that real clients raise for a real server's faults."""

import json
import threading
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from oprag.compare.providers.model import ModelSpec
from oprag.compare.providers.retry import RETRIES, with_retries
from oprag.methods.model_calls import Completion, Message, Prompt
from tests.compare.providers.chat_server import BROKEN, Fault, serve

PROMPT = Prompt((Message("user", "hello"),), "answer")


@pytest.fixture
def server():
    with serve() as running:
        yield running


def body(prompt):
    return {"model": "m", "messages": [{"role": "user", "content": prompt}]}


def by_httpx(server):
    def model(prompt):
        response = httpx.post(f"{server.address}/chat/completions", json=body(prompt), timeout=10)
        response.raise_for_status()
        return response.json()["choices"][0]["message"]["content"]

    return model


def by_urllib(server):
    def model(prompt):
        request = urllib.request.Request(
            f"{server.address}/chat/completions",
            json.dumps(body(prompt)).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return json.load(response)["choices"][0]["message"]["content"]
        except urllib.error.HTTPError as error:
            error.close()
            raise

    return model


def by_wrapped(server):
    """A client that raises errors of its own from those of another, as Google's package of LangChain does."""

    def model(prompt):
        try:
            return by_httpx(server)(prompt)
        except httpx.HTTPError as error:
            raise ValueError("the model could not be called") from error

    return model


class Waits(list[float]):
    """Takes the place of waiting."""

    def __call__(self, seconds):
        self.append(seconds)
        return False


def called(model, retries=RETRIES):
    waits = Waits()

    def ask():
        try:
            return Completion(model("hello"))
        except Exception as error:  # noqa: BLE001
            return Completion(error=error)

    return with_retries(ask, retries, waits), waits


def waited(error):
    """The seconds that are waited for a second call after this error; None where there is no second call."""
    waits = Waits()
    with_retries(lambda: Completion(error=error), 1, waits)
    return waits[0] if waits else None


@pytest.mark.parametrize("client", [by_httpx, by_urllib, by_wrapped])
@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529, BROKEN])
def test_a_failure_that_passes_is_asked_again(server, client, status):
    server.faults = [Fault(status), Fault(status)]
    completion, waits = called(client(server))
    assert (completion.text, completion.error) == ("You said: hello", None)
    assert len(server.requests) == 3
    # Twice as long the second time, less than a half of it by chance.
    assert 0.25 <= waits[0] <= 0.5 <= waits[1] <= 1.0


@pytest.mark.parametrize("client", [by_httpx, by_urllib, by_wrapped])
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422, 501])
def test_a_failure_that_stays_is_not(server, client, status):
    server.faults = [Fault(status)]
    completion, waits = called(client(server))
    assert completion.error is not None
    assert (len(server.requests), waits) == (1, [])


@pytest.mark.parametrize("client", [by_httpx, by_urllib])
def test_the_last_error_is_kept(server, client):
    server.faults = [Fault(500), Fault(500), Fault(503), Fault(500)]
    completion, waits = called(client(server))
    assert "503" in str(completion.error)
    assert (len(server.requests), len(waits)) == (3, 2)
    assert len(server.faults) == 1


def test_without_retries_a_call_is_made_once(server):
    server.faults = [Fault(500)]
    completion, waits = called(by_httpx(server), retries=0)
    assert completion.error is not None
    assert (len(server.requests), waits) == (1, [])


def test_a_server_that_is_not_there():
    with serve() as server:
        pass
    for client in (by_httpx, by_urllib):
        completion, waits = called(client(server))
        assert completion.error is not None
        assert len(waits) == 2


def test_a_server_that_does_not_answer():
    with serve() as slow:
        slow.faults = [Fault(BROKEN, after=0.5)] * 3
        address = f"{slow.address}/chat/completions"
        completion, waits = called(lambda prompt: httpx.post(address, json=body(prompt), timeout=0.05).text)
    assert isinstance(completion.error, httpx.TimeoutException)
    assert len(waits) == 2


@pytest.mark.parametrize("client", [by_httpx, by_urllib, by_wrapped])
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({"Retry-After": "7"}, 7), ({"Retry-After": "0.25"}, 0.25), ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5)],
)
def test_what_the_server_asks_to_wait_is_waited(server, client, headers, seconds):
    server.faults = [Fault(429, headers)]
    completion, waits = called(client(server))
    assert completion.error is None
    assert waits == [seconds]


def test_a_date_to_wait_for(server):
    server.faults = [Fault(503, {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=30))})]
    assert 25 < called(by_httpx(server))[1][0] <= 30
    server.faults = [Fault(503, {"Retry-After": format_datetime(datetime.now(UTC) - timedelta(days=1))})]
    assert called(by_httpx(server))[1] == [0.0]
    server.faults = [Fault(503, {"Retry-After": "soon"})]
    assert 0.25 <= called(by_httpx(server))[1][0] <= 0.5


def test_a_server_that_wants_an_hour_is_not_asked_again(server):
    server.faults = [Fault(429, {"Retry-After": "3600"})]
    completion, waits = called(by_httpx(server))
    assert "429" in str(completion.error)
    assert (len(server.requests), waits) == (1, [])


def test_a_rate_limit_that_money_alone_lifts():
    class RateLimitError(Exception):
        status_code = 429

    assert waited(RateLimitError("Rate limit reached for requests"))
    assert waited(RateLimitError("Error code: 429 - {'error': {'code': 'insufficient_quota'}}")) is None


def test_errors_of_clients_that_carry_no_status():
    def named(name, *bases):
        return type(name, bases or (Exception,), {})()

    for name in ("APITimeoutError", "APIConnectionError", "RateLimitError", "RemoteProtocolError", "ReadTimeout"):
        assert waited(named(name))
    assert waited(TimeoutError())
    assert waited(ConnectionResetError())
    for error in (ValueError("context too long"), KeyError("x"), named("AuthenticationError"), RuntimeError("x")):
        assert waited(error) is None
    throttled = named("ClientError")
    throttled.response = {"Error": {"Code": "X"}, "ResponseMetadata": {"HTTPStatusCode": 429}}
    assert 0.25 <= waited(throttled) <= 0.5


def test_errors_that_come_from_each_other_end():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert waited(first) is None
    timeout, caught = TimeoutError("a"), ValueError("b")
    timeout.__cause__, caught.__cause__ = caught, timeout
    assert 0.25 <= waited(timeout) <= 0.5


def test_a_set_event_ends_the_waiting(server):
    stop = threading.Event()
    server.faults = [Fault(429, {"Retry-After": "50"})] * 3
    model = ModelSpec(by_httpx(server), "server").open(stop)
    ended = []
    thread = threading.Thread(target=lambda: ended.append(model.complete(PROMPT)))
    thread.start()
    while not server.requests:
        time.sleep(0.01)
    stop.set()
    thread.join()
    assert "429" in str(ended[0].error)
    assert len(server.requests) == 1
    # Nor is waited for afterwards.
    assert model.complete(PROMPT).error is not None
    assert len(server.requests) == 2
