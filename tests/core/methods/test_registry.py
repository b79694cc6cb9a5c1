import pytest

from oprag.errors import OptionError
from oprag.methods import Generate, MethodOptions, Result, Retrieve, method_names
from oprag.methods.registry import check_needs, find_method
from tests.core.methods.helpers import METHODS, World, parts


def twice(task):
    """Asks, then asks to improve the answer."""
    (context,) = yield Retrieve((task.question,))
    (draft,) = yield Generate((task.prompt("answer", context=context.text),))
    (answer,) = yield Generate((task.prompt("refine", existing_answer=draft.text, context=context.text),), final=True)
    return Result(answer.text, (context,))


@pytest.mark.parametrize("name", METHODS)
def test_our_names_are_taken(name, registered):
    with pytest.raises(OptionError, match=f"a method named '{name}' already exists"):
        registered(name, twice)
    assert find_method(name).run is not twice


@pytest.mark.parametrize(
    ("name", "method", "needs", "message"),
    [
        *[(name, twice, (), "the name of a method must be a non-empty string") for name in ("", None, 5, b"x", ["x"])],
        *[("mine", method, (), "generator function of a Task") for method in (None, "stuff", 5)],
        *[
            ("mine", twice, needs, "needs may contain only embeddings, read_source")
            for needs in (["embedding"], "embeddings", ["read_source", "gpu"], [5])
        ],
    ],
    ids=range(12),
)
def test_what_is_no_method_is_refused(registered, name, method, needs, message):
    with pytest.raises(OptionError, match=message):
        registered(name, method, needs=needs)
    assert "mine" not in method_names()


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        ({"method": "reciprocal"}, "embeddings="),
        ({"method": "map_rerank", "rank_by": "cosine"}, "embeddings="),
        ({"method": "step_down", "inner_method": "map_rerank", "rank_by": "cosine"}, "embeddings="),
        ({"method": "long_context"}, "read_source="),
        ({"method": "self_route"}, "read_source="),
        ({"method": "step_down", "inner_method": "self_route"}, "read_source="),
        ({"method": "reciprocal", "inner_method": "long_context"}, "embeddings="),
    ],
)
def test_what_is_missing_is_said_before_anything_is_spent(options, missing):
    with pytest.raises(OptionError, match=missing):
        check_needs(MethodOptions(**options), embeddings=False, read_source=False)
    check_needs(MethodOptions(**options), embeddings=True, read_source=True)


@pytest.mark.parametrize("outer", ["step_down", "reciprocal"])
@pytest.mark.parametrize("inner", ["step_down", "reciprocal"])
def test_questions_without_end_are_refused(outer, inner):
    with pytest.raises(OptionError, match=f"inner_method='{inner}'"):
        check_needs(MethodOptions(method=outer, inner_method=inner), embeddings=True, read_source=True)


def version(number):
    """A function as a notebook's cell makes it anew each time that it is run."""
    made = {"Retrieve": Retrieve, "Result": Result, "__name__": "__main__"}
    source = (
        f"def mine(task):\n    (context,) = yield Retrieve((task.question,))\n    return Result('{number}', (context,))"
    )
    exec(source, made)
    return made["mine"]


def test_a_cell_can_be_run_again(registered):
    registered("mine", version(1))
    registered("mine", version(2))
    assert World(parts(1)).answer(method="mine").text == "2"
    with pytest.raises(OptionError, match="already"):
        registered("mine", twice)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (lambda task: Result("It sank.", ()), "must be a generator function"),
        (lambda task: None, "must be a generator function"),
        (lambda task: iter(()), "must be a generator function"),
        (lambda task: (yield Retrieve((task.question,))), "must return a Result, got tuple"),
        (lambda task: (yield Retrieve(task.question)), "questions must be a tuple of str"),
        (lambda task: (yield Generate(task.prompt("answer", context="x"))), "prompts must be a tuple of Prompt"),
        (lambda task: (yield Generate(("Say yes.",))), "prompts must be a tuple of Prompt"),  # type: ignore[arg-type]
        (lambda task: (yield "answer"), "must yield requests"),
    ],
    ids=range(8),
)
def test_what_is_wrong_with_a_method_is_said(registered, method, message):
    registered("wrong", method)
    with pytest.raises(TypeError, match=message):
        World(parts(1)).answer(method="wrong")
