"""Our middleware beside LangChain's own: those that remove, clear, refuse and interrupt."""

from typing import Any

import pytest
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    PIIMiddleware,
    SummarizationMiddleware,
    wrap_model_call,
)
from langgraph.checkpoint.memory import InMemorySaver

from oprag.langchain import OrderPreservingMiddleware, working_context_of
from tests.adapters.langchain.agents import (
    ScriptedModel,
    agent_of,
    asked,
    dangling,
    numbering,
    results_in,
    thread,
)
from tests.adapters.scripted import both_sides

# Each search finds again what each of the ones before did.
SEARCHES: list[Any] = [["7"], ["7 2"], ["2 7 30"], ["30 7 5"], ["7 2 30 5 1"], "The end."]
SHOWN = {1: 7, 2: 2, 3: 30, 4: 5, 5: 1}

layouts = pytest.mark.parametrize("layout", ["delta", "compact"])
both_places = pytest.mark.parametrize("last", [True, False], ids=["ours last", "ours first"])


def placed(other: Any, *, last: bool, layout: Any = "delta") -> list[Any]:
    ours = OrderPreservingMiddleware(layout=layout)
    return [other, ours] if last else [ours, other]


def all_text(request: Any) -> str:
    return "\n".join(results_in(request))


@both_sides
@both_places
@layouts
async def test_summaries_leave_no_pointer_without_its_text(layout: Any, last: bool, is_async: bool):
    summarizing = SummarizationMiddleware(
        ScriptedModel(turns=["They sailed."]), trigger=("messages", 6), keep=("messages", 3)
    )
    model = ScriptedModel(turns=SEARCHES, counts_calls=True)
    agent = agent_of(model, middleware=placed(summarizing, last=last, layout=layout), checkpointer=InMemorySaver())
    result = await agent.ainvoke(asked(), thread()) if is_async else agent.invoke(asked(), thread())
    assert any("They sailed." in request[0].text for request in model.requests)
    working = working_context_of(result)
    assert len(working) == 5
    for request in model.requests:
        assert not dangling(request, working)
    if layout == "compact":
        final = results_in(model.requests[-1])[-1]
        assert all(f"Part {part} of" in final for part in SHOWN.values())
        assert final.count("Part") == len(SHOWN)


@layouts
def test_cleared_results_are_shown_again_where_they_are_found_again(layout: Any):
    clearing = ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=1, keep=2)])
    model = ScriptedModel(turns=SEARCHES)
    result = agent_of(model, middleware=placed(clearing, last=True, layout=layout)).invoke(asked())
    working = working_context_of(result)
    *_, request = model.requests
    assert results_in(request)[:3] == ["[cleared]"] * 3
    assert not dangling(request, working)
    shown = all_text(request)
    assert {n for n, part in SHOWN.items() if f"Part {part} of" in shown} == set(SHOWN)
    assert numbering(result) == {number: f"Part {part} of voyage.txt." for number, part in SHOWN.items()}
    # The state has all that was found, so that a later call without clearing has it.
    assert results_in(result["messages"])[0] == "[1] voyage.txt\nPart 7 of voyage.txt."


@pytest.mark.filterwarnings("ignore:the results of the tool:oprag.errors.RetrievalWarning")
@layouts
def test_redacted_text_does_not_come_back(layout: Any):
    redacting = PIIMiddleware("part", detector="Part 7", apply_to_tool_results=True, apply_to_input=False)
    model = ScriptedModel(turns=[["7"], ["7 2"], ["2"], "The end."])
    agent_of(model, middleware=placed(redacting, last=True, layout=layout)).invoke(asked())
    assert "Part 7" not in "".join(map(all_text, model.requests))
    assert "[REDACTED_PART] of voyage.txt." in results_in(model.requests[-1])[0]
    assert "Part 2 of voyage.txt." in results_in(model.requests[-1])[2]


@layouts
def test_redacted_prompts_stay_redacted(layout: Any):
    @wrap_model_call
    def redact(request: Any, handler: Any) -> Any:
        messages = [
            one.model_copy(update={"content": one.content.replace("Part 7", "[X]")}) if one.type == "tool" else one
            for one in request.messages
        ]
        return handler(request.override(messages=messages))

    model = ScriptedModel(turns=[["7"], ["7 2"], ["2 9"], "The end."])
    agent_of(model, middleware=placed(redact, last=True, layout=layout)).invoke(asked())
    assert "Part 7" not in "".join(map(all_text, model.requests))
    first, *_, last = results_in(model.requests[-1])
    assert first == "[1] voyage.txt\n[X] of voyage.txt."
    assert "Part 9 of voyage.txt." in last
