"""`oprag mcp`, as a client starts it."""

import os
import sys

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from oprag.cli import mcp as command
from tests.cli.commands import run
from tests.helpers import prose
from tests.mcp.clients import Client, connected


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "sub" / ".hidden").mkdir(parents=True)
    for name in ("b.md", "a.txt", "sub/c.rst", "sub/.hidden/d.md", ".e.md", "f.py"):
        (tmp_path / name).write_text(f"{prose(60)} This is {name}.", encoding="utf-8")
    (tmp_path / "link.md").symlink_to(tmp_path / "f.py")
    (tmp_path / "latin.txt").write_bytes("Größe".encode("latin1"))
    return tmp_path


@pytest.fixture
def served(monkeypatch):
    """The servers that the command would have run."""
    servers = []

    def server_of(*args, **kwargs):
        servers.append(original(*args, **kwargs))
        monkeypatch.setattr(servers[-1], "run", lambda: None)
        return servers[-1]

    from oprag.mcp import server

    original = server.server_of
    monkeypatch.setattr(server, "server_of", server_of)
    return servers


async def test_files_of_a_folder_are_served_by_their_names_in_it(folder, served, capsys):
    result = run("mcp", folder, "--k", 3)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert result.stderr.startswith(f"Reading 4 files of {folder}.\n")
    async with connected(served[0]) as client:
        found = await client.call("search", query="This is sub/c.rst.")
        assert len(found.documents) == 3
        outline = (await client.call("outline")).text
    assert [line.split(":")[0] for line in outline.splitlines()[1:]] == ["- a.txt", "- b.md", "- sub/c.rst"]
    # Another thread reads them, at once.
    assert f"Serving 3 files of {folder}.\n" in result.stderr + capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere is not a folder"),
        (["empty"], "empty has no files named .markdown, .md, .pdf, .rst, .txt"),
        (["full", "--k", "0"], "k must"),
    ],
)
def test_what_cannot_be_served_is_said_on_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.md").write_text("A text.", encoding="utf-8")
    result = run("mcp", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


async def test_a_folder_without_a_readable_file_is_said_to_the_client(tmp_path, served):
    (tmp_path / "latin.txt").write_bytes("Größe".encode("latin1"))
    assert run("mcp", tmp_path).exit_code == 0
    async with connected(served[0]) as client:
        result = await client.call("search", query="size")
    assert result.failed
    assert "could be read" in result.text


def test_over_http_a_token_is_printed_or_taken_from_the_environment(folder, served, monkeypatch):
    from oprag.mcp import http

    calls = []
    monkeypatch.setattr(http, "serve", lambda server, port, token: calls.append((port, token)))
    printed = run("mcp", folder, "--http")
    assert printed.exit_code == 0
    port, token = calls[0]
    assert f"http://127.0.0.1:{port}/mcp\nAuthorization: Bearer {token}" in printed.stderr
    assert len(token) >= 32
    monkeypatch.setenv(command.TOKEN, "mine")
    run("mcp", folder, "--http", "--port", 9_000)
    assert calls[1] == (9_000, "mine")


@pytest.mark.process
async def test_a_client_starts_it_and_survives_its_flood(folder):
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-c", "from oprag.cli import main; main()", "mcp", str(folder)],
        env={**os.environ},
    )
    async with stdio_client(parameters) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        client = Client(session)
        first = await client.call("search", query="This is b.md.")
        assert "This is b.md." in " ".join(first.contents)
        for number in range(200):
            await client.call("search", query=f"{'x' * number} amber{number}")
        assert not (await client.call("search", query="This is a.txt.", show_again=True)).failed
