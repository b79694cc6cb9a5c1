from typing import Any

import pytest

from oprag.methods import Embed, Generate, Message, Prompt, ReadSources, Result, Retrieve, Together
from oprag.methods.run import Body, Request, flattened
from tests.core.methods.helpers import World, parts

NOTHING = Result("", ())


def prompt(name: str) -> Prompt:
    return Prompt((Message("user", name),), name)


def body(name: str, *requests: Request | Together, closed: list[str] | None = None) -> Body:
    """Yields these requests; its result tells what came back."""
    replies = []
    try:
        for request in requests:
            reply = yield request
            replies.append(reply)
    finally:
        if closed is not None:
            closed.append(name)
    return Result(f"{name}: {replies}", ())


def together(*bodies: Body) -> Body:
    results: tuple[Result, ...] = yield Together(bodies)
    return Result(" | ".join(result.text for result in results), ())


def generate(*names: str, final: bool = False) -> Generate:
    return Generate(tuple(map(prompt, names)), final)


@pytest.mark.parametrize(
    ("requests", "merged", "replies"),
    [
        (
            [generate("a", "b"), generate(), generate("c", "a")],
            generate("a", "b", "c", "a"),
            [["a!", "b!"], [], ["c!", "a!"]],
        ),
        ([Retrieve(("b",)), Retrieve(("c", "a", "b"))], Retrieve(("b", "c", "a", "b")), [[2], [3, 1, 2]]),
        (
            [Embed(("a",), ("b", "c")), Embed((), ("a",)), Embed(("d",), ())],
            Embed(("a", "d"), ("b", "c", "a")),
            [([[97]], [[98], [99]]), ([], [[97]]), ([[100]], [])],
        ),
        (
            [ReadSources(("b", "a")), ReadSources(("c", "b", "b"))],
            ReadSources(("b", "a", "c", "b", "b")),
            [("B", "A"), ("C", "B", "B")],
        ),
    ],
    ids=["calls", "searches", "vectors", "sources"],
)
def test_equal_requests_become_one_and_each_gets_its_replies(requests, merged, replies):
    texts = {name: f"{name}!" for name in "abc"}
    found = {"a": parts(1), "b": parts(2), "c": parts(3)}
    world = World(found, sources=str.upper, embed=lambda text: [ord(text)], **texts)
    seen: dict[int, Any] = {}

    def asking(number: int, request: Any) -> Body:
        reply = yield request
        if isinstance(request, Generate):
            reply = [completion.text for completion in reply]
        seen[number] = [len(context.kept) for context in reply] if isinstance(request, Retrieve) else reply
        return NOTHING

    world.result(together(*(asking(number, request) for number, request in enumerate(requests))))
    assert world.requests == [merged]
    assert [seen[number] for number in range(len(requests))] == replies


def test_the_sequence_goes_in_rounds():
    world = World(parts(1), sources=str.upper)
    world.result(
        together(
            body("x", Retrieve(("a",)), generate("a"), generate("aa")),
            body("y", generate("b"), generate("bb")),
            body("z", ReadSources(("s",)), Retrieve(("c",))),
            body("nothing"),
        )
    )
    assert world.requests == [
        Retrieve(("a",)),
        ReadSources(("s",)),
        generate("b"),
        Retrieve(("c",)),
        generate("a", "bb"),
        generate("aa"),
    ]


def test_all_bodies_are_closed_when_one_fails():
    closed: list[str] = []

    def failing() -> Body:
        try:
            yield generate("a")
            raise RuntimeError("broken body")
        finally:
            closed.append("failing")

    bodies = body("x", generate("a"), generate("b"), closed=closed), failing(), body("y", generate("c"), closed=closed)
    with pytest.raises(RuntimeError, match="broken body"):
        World(parts(1)).result(together(*bodies))
    assert sorted(closed) == ["failing", "x", "y"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("no store"), None])
def test_all_bodies_are_closed_when_the_driver_fails_or_stops(error):
    closed: list[str] = []
    flat = flattened(together(*(body(name, generate(name), closed=closed) for name in "xyz")))
    assert next(flat) == generate("x", "y", "z")
    if error is None:
        flat.close()
    else:
        with pytest.raises(type(error)):
            flat.throw(error)
    assert sorted(closed) == ["x", "y", "z"]


def test_what_is_no_request_is_named():
    wrong: list[object] = ["What?"]
    with pytest.raises(TypeError, match="What"):
        World(parts(1)).result(together(body("x", *wrong), body("y", generate("a"))))  # type: ignore[arg-type]
