"""The server over HTTP on this machine."""

import socket
import threading
import time

import httpx
import pytest
import uvicorn

from oprag.mcp.http import PATH, with_token
from oprag.mcp.server import create_mcp_server
from tests.mcp.clients import over_http
from tests.mcp.test_server import vector_store

TOKEN = "a token that nobody guesses"


@pytest.fixture(scope="module")
def address():
    app = with_token(create_mcp_server(vector_store(), k=4).streamable_http_app(), TOKEN)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, log_level="warning")
        # Imports its protocols here, not in the thread.
        config.load()
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}"
        server.should_exit = True
        thread.join()


@pytest.mark.parametrize("given", [None, "Bearer wrong", "Bearer", TOKEN, "Bearer ümlaut"])
def test_a_request_without_the_token_is_refused(address, given):
    headers = {} if given is None else {"Authorization": given.encode()}
    refused = httpx.post(address, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=headers)
    assert refused.status_code == 401
    assert "token" in refused.json()["error"].casefold()


async def test_each_session_has_its_own_numbers(address):
    async with over_http(address, TOKEN) as one, over_http(address, TOKEN) as other:
        first = await one.call("search", query="fjord")
        assert first.text.startswith("[1] book\n")
        assert (await one.call("search", query="fjord")).text.startswith("[1], [2]")
        assert await other.call("search", query="fjord") == first
