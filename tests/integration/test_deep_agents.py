"""Real Deep Agents: one file for each source, whatever the model, its subagents, evictions and interrupts do."""

from __future__ import annotations

import re
import warnings
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import ToolException, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from docs.example_code import EXAMPLES
from oprag.errors import OptionError
from oprag.langchain import OrderPreservingMiddleware
from oprag.langchain.tool_results import IN_FILES
from tests.adapters.langchain.agents import (
    ScriptedModel,
    asked,
    numbering,
    results_in,
    search_tool,
    thread,
)
from tests.adapters.scripted import both_sides
from tests.reader import ROOT, python_blocks, readers_names, text_blocks

create_deep_agent: Any = pytest.importorskip("deepagents").create_deep_agent
backends: Any = pytest.importorskip("deepagents.backends")
FilesystemMiddleware: Any = pytest.importorskip("deepagents.middleware").FilesystemMiddleware

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SOURCES = (
    "voyage.txt",
    "a/README.md",
    "b/README.md",
    "../../etc/passwd",
    "https://x.org/f.pdf?sig=abcdefghijklmnop123456",
)
WORDS = "of the voyage to the north, as the mate wrote it down. "
PARTS = [
    Document(f"Part {source}-{number:02d} {WORDS}", metadata={"source": name, "start_index": number * 72})
    for source, name in enumerate(SOURCES)
    for number in range(12)
]
LABEL = re.compile(r"^(?:## )?\[(\d+)\] (?:\S+\n)?(Part \d-\d\d)", re.MULTILINE)
SAID = re.compile(r"\[(\d+)\] is (Part \d-\d\d)")
LONG = "Tool result too large"


@tool("search", response_format="content_and_artifact")
def search(query: str) -> tuple[str, list[Document]]:
    """Search: the numbers of the parts; "fail" fails."""
    if "fail" in query:
        raise ToolException("The search failed.")
    found = [PARTS[int(number)] for number in query.split()]
    FOUND.extend(one.page_content for one in found)
    return "\n\n".join(one.page_content for one in found), found


search.handle_tool_error = True
FOUND: list[str] = []


def call(name: str, identity: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": identity}


def sub_turn(messages: list[Any]) -> AIMessage:
    """A subagent: searches as it is told, then reads every file that it was told of, then cites all that it read."""
    told = messages[-1]
    while told.type != "human":
        told = messages[messages.index(told) - 1]
    since = messages[messages.index(told) :]
    queries = told.text.rpartition("search:")[2].split(",")
    paths = list(dict.fromkeys(re.findall(r"^/sources/\S+", "\n".join(results_in(since)), re.MULTILINE)))
    done = [one["name"] for message in since if isinstance(message, AIMessage) for one in message.tool_calls]
    if "search" not in done:
        return AIMessage("", tool_calls=[call("search", f"s{n}", query=query) for n, query in enumerate(queries)])
    if paths and "read_file" not in done:
        return AIMessage("", tool_calls=[call("read_file", f"r{n}", file_path=path) for n, path in enumerate(paths)])
    read = [message.text for message in since if isinstance(message, ToolMessage) and message.name == "read_file"]
    found = sorted((int(number), part) for text in read for number, part in LABEL.findall(text))
    # Parallel subagents have different passages under the highest numbers; a longer answer would be moved to a file.
    said = [f"[{number}] is {part}" for number, part in found[-8:]]
    return AIMessage("; ".join([*said, *paths[:1], "nobody knows [999]"]))


class Conversation:
    """A random conversation."""

    def __init__(self, seed: int) -> None:
        chance = self.chance = Random(seed)
        self.turns = [[self.step(turn, n) for n in range(chance.randint(1, 3))] for turn in range(chance.randint(2, 6))]
        self.limit = chance.choice([None, 100])  # tokens of a result before it is moved to a file
        self.interrupts = chance.random() < 0.4
        self.questions = chance.randint(1, 2)
        self.on_disk = chance.random() < 0.3
        self.is_async = chance.random() < 0.3

    def query(self) -> str:
        chance = self.chance
        return (
            "fail"
            if chance.random() < 0.1
            else " ".join(map(str, chance.sample(range(len(PARTS)), chance.randint(1, 8))))
        )

    def step(self, turn: int, number: int) -> dict[str, Any]:
        kind = self.chance.choices(["search", "task", "fork", "edit", "read"], [5, 3, 1, 1, 1])[0]
        identity = f"call-{turn}-{number}"
        if kind in ("task", "fork"):
            queries = ",".join(self.query() for _ in range(self.chance.randint(1, 2)))
            return call("task", identity, description=f"search:{queries}", subagent_type=kind)
        if kind == "edit":
            return call(
                "edit_file", identity, file_path="/sources/voyage.txt", old_string="Part 0", new_string="PART 0"
            )
        if kind == "read":
            return call("read_file", identity, file_path="/sources/voyage.txt")
        return call("search", identity, query=self.query())


def conversation(data: Conversation, folder: Path) -> Any:
    """An agent and its subagents for a conversation."""
    backend = backends.FilesystemBackend(root_dir=folder) if data.on_disk else backends.StateBackend()

    def middleware() -> list[Any]:
        limit = data.limit
        moving = [] if limit is None else [FilesystemMiddleware(backend=backend, tool_token_limit_before_evict=limit)]
        return [*moving, OrderPreservingMiddleware(files=backend if data.on_disk else True)]

    sub = ScriptedModel(turns=[sub_turn])
    model = ScriptedModel(turns=[*data.turns, "The end."])
    task = {"name": "task", "description": "-", "system_prompt": "-", "model": sub, "tools": [search]}
    options: dict[str, Any] = {"interrupt_on": {"search": True}} if data.interrupts else {}
    return create_deep_agent(
        model,
        tools=[search],
        middleware=middleware(),
        subagents=[
            {**task, "middleware": middleware()},
            {"name": "fork", "description": "-", "mode": "fork", "model": sub},
        ],
        backend=backend,
        checkpointer=InMemorySaver(),
        **options,
    )


async def run(agent: Any, data: Conversation) -> Any:
    async def step(given: Any) -> Any:
        return await agent.ainvoke(given, thread()) if data.is_async else agent.invoke(given, thread())

    state: Any = None
    for _ in range(data.questions):
        state = await step(asked())
        while interrupts := state.get("__interrupt__"):
            # Parallel subagents are interrupted each.
            answers = {
                one.id: {"decisions": [{"type": "approve"} for _ in one.value["action_requests"]]} for one in interrupts
            }
            state = await step(Command(resume=answers))
    return state


@pytest.mark.parametrize("seed", range(40))
async def test_every_passage_is_in_one_file_in_source_order(seed: int, tmp_path: Path):
    await check(seed, tmp_path)


async def check(seed: int, folder: Path) -> Any:
    """Run a conversation, and return its state."""
    data = Conversation(seed)
    FOUND.clear()
    agent = conversation(data, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = await run(agent, data)
    numbers = numbering(state)
    assert sorted(numbers.values()) == sorted(set(FOUND))
    # No number changes.
    history = [numbering(one.values) for one in agent.get_state_history(thread())][::-1]
    assert all(earlier.items() <= later.items() for earlier, later in pairwise(history))
    # Files are as the last search in their source left them, whatever the agent edited before.
    files = {path: one["content"] for path, one in state.get("files", {}).items()}
    if data.on_disk:
        files = files_in(folder)
    labels = {path: LABEL.findall(text.replace("PART", "Part")) for path, text in files.items()}
    assert sorted(int(number) for found in labels.values() for number, _ in found) == sorted(numbers)
    for path, found in labels.items():
        parts = [part for _, part in found]
        assert parts == sorted(parts)
        assert len({part[:6] for part in parts}) == 1
        assert path.startswith("/sources/")
        assert ".." not in path
        assert "abcdefghijklmnop" not in path + files[path]
        assert all(numbers[int(number)].startswith(part) for number, part in found)
    for message in state["messages"]:
        if isinstance(message, ToolMessage) and message.name != "read_file":
            assert WORDS not in message.text
            assert LONG not in message.text
            # Subagents cite by the numbers of their parent, and name its files.
            said = SAID.findall(message.text)
            assert all(numbers[int(number)].startswith(part) for number, part in said)
            assert not said or "[999]" not in message.text
            if said or IN_FILES in message.text:
                assert set(re.findall(r"/sources/[\w./-]+", message.text)) <= set(files)
    return state


def files_in(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {f"/{path.relative_to(folder).as_posix()}": path.read_text(encoding="utf-8") for path in files}


def reading(messages: list[Any]) -> AIMessage:
    """Read the first file that a search named."""
    paths = re.findall(r"^/sources/\S+", "\n".join(results_in(messages)), re.MULTILINE)
    return AIMessage("", tool_calls=[call("read_file", f"read-{len(messages)}", file_path=paths[0])])


BACKENDS: dict[str, Any] = {
    "disk": lambda folder: backends.FilesystemBackend(root_dir=folder),
    "state": lambda _: backends.StateBackend(),
    "store": lambda _: backends.StoreBackend(namespace=lambda _: ("files",)),
    "state for sources": lambda folder: backends.CompositeBackend(
        default=backends.FilesystemBackend(root_dir=folder), routes={"/sources/": backends.StateBackend()}
    ),
}


@both_sides
@pytest.mark.parametrize("name", BACKENDS)
async def test_every_backend_has_the_files(name: str, is_async: bool, tmp_path: Any):
    backend = BACKENDS[name](tmp_path)
    middleware = [OrderPreservingMiddleware(files=backend)]
    sub = ScriptedModel(turns=[["7"], "Found [3]."])
    task = {"name": "sub", "description": "-", "system_prompt": "-", "model": sub, "tools": [search_tool()]}
    delegated = call("task", "task", description="-", subagent_type="sub")
    agent = create_deep_agent(
        ScriptedModel(turns=[["2 9"], [delegated], reading, "The end."]),
        [search_tool()],
        middleware=middleware,
        subagents=[{**task, "middleware": middleware}],
        backend=backend,
        store=InMemoryStore(),
        checkpointer=InMemorySaver(),
    )
    for one in ("one", "two"):
        state = await agent.ainvoke(asked(), thread(one)) if is_async else agent.invoke(asked(), thread(one))
        read = results_in(state["messages"])[-1]
        assert re.findall(r"Part (\d+)", read) == ["2", "7", "9"]
        assert re.findall(r"^\[(\d+)\]", read, re.MULTILINE) == ["1", "3", "2"]
    if name == "disk":
        assert len(list(tmp_path.glob("sources/*/voyage.txt"))) == 2


def test_a_backend_that_the_middleware_does_not_know_is_refused(tmp_path: Any):
    agent = create_deep_agent(
        ScriptedModel(turns=[["2 9"], "The end."]),
        [search_tool()],
        middleware=[OrderPreservingMiddleware(files=True)],
        backend=backends.FilesystemBackend(root_dir=tmp_path),
    )
    with pytest.raises(OptionError, match="pass the same one to the middleware"):
        agent.invoke(asked())


def test_every_line_of_a_long_file_is_read_in_pages():
    found = [Document("x " * 30_000, metadata={"source": "long", "start_index": 70_000 * n}) for n in range(4)]
    paged: list[Any] = []

    def page(messages: list[Any]) -> AIMessage:
        offset = re.search(r"next offset (\d+)", messages[-1].text)
        paged.append(messages[-1].text)
        if messages[-1].name == "read_file" and not offset:
            return AIMessage("The end.")
        start = int(offset[1]) if offset else 0
        return AIMessage("", tool_calls=[call("read_file", f"r{start}", file_path="/sources/long.md", offset=start)])

    @tool("search", response_format="content_and_artifact")
    def long(query: str) -> tuple[str, list[Document]]:
        """Search."""
        return "\n\n".join(one.page_content for one in found), found

    agent = create_deep_agent(
        ScriptedModel(turns=[["all"], *[page] * 20]), [long], middleware=[OrderPreservingMiddleware(files=True)]
    )
    agent.invoke(asked())
    assert sum(text.count("x ") for text in paged) == 4 * 30_000
    assert not any("truncated mid-line" in text for text in paged)


def test_the_example_reads_one_file(capsys: pytest.CaptureFixture[str]):
    exec(compile((EXAMPLES / "langchain_deep_agent.py").read_text(encoding="utf-8"), "example", "exec"), {})
    first, second, read, answer, cited = capsys.readouterr().out.strip().split("\n---\n")
    assert "new lines 5-25 [1] [2] [3]" in first
    assert "1 new" in second
    assert re.findall(r"^\[(\d+)\]", read, re.MULTILINE) == ["1", "2", "3", "4"]
    assert answer.endswith("[3].")
    assert cited in read


def test_the_page_about_agents_shows_what_is_printed(capsys: pytest.CaptureFixture[str]):
    page = ROOT / "docs" / "how_to" / "agents.md"
    names = readers_names()
    blocks = python_blocks(page)
    (block,) = [one for one in blocks if "deepagents" in one]
    assert len(block.strip().splitlines()) <= 15
    for one in (blocks[0], block):
        exec(compile(one, str(page), "exec"), names)
    message, written = text_blocks(page)[1:3]
    assert written.strip() in re.sub(r" +$", "", capsys.readouterr().out, flags=re.MULTILINE)
    assert message.strip() in results_in(names["result"]["messages"])
