"""What the server of a local model answers, and to whom."""

import httpx
import pytest

from oprag.compare.providers.chat_models import llama_parameters, local_model_file, start_llama_server

pytestmark = pytest.mark.integration

WINDOW = 256  # tokens
ENDLESS = {"prompt": "One, two, three,", "n_predict": -1, "ignore_eos": True}


@pytest.fixture(scope="module")
def server():
    return start_llama_server(llama_parameters(local_model_file(), WINDOW, threads=1))


def post(server, route, body, **headers):
    return httpx.post(f"{server.address}{route}", json=body, headers=headers, timeout=120)


@pytest.mark.parametrize("route", ["/completion", "/v1/completions", "/v1/chat/completions", "/tokenize", "/infill"])
@pytest.mark.parametrize("key", [None, "-", "0" * 43])
def test_a_page_in_a_browser_gets_nothing_without_the_key(server, route, key):
    given = {} if key is None else {"Authorization": f"Bearer {key}"}
    reply = post(server, route, ENDLESS, Origin="https://a.page", **given)
    assert reply.status_code == 401
    assert server.key not in reply.text


def test_with_the_key_it_answers(server):
    reply = post(server, "/tokenize", {"content": "One two"}, Authorization=f"Bearer {server.key}")
    assert len(reply.json()["tokens"]) == 2


def test_a_reply_ends_with_the_window(server):
    reply = post(server, "/completion", ENDLESS, Authorization=f"Bearer {server.key}").json()
    assert 0 < reply["tokens_predicted"] < WINDOW
