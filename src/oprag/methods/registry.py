"""The registry of methods, and checks that the requirements of a method are met."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple, get_args

from oprag._internal.masking import describe
from oprag.errors import OptionError
from oprag.methods.answer import Result
from oprag.methods.options import MethodOptions
from oprag.methods.task import Task

__all__ = [
    "OUR_METHODS",
    "Method",
    "MethodFunction",
    "Need",
    "check_needs",
    "find_method",
    "method_names",
    "register_method",
]

_READER_HINT = "pass read_source=..., a folder, a mapping of source names to texts, or a function of the name"

MethodFunction = Callable[[Task], Generator[Any, Any, Result]]
Need = Literal["embeddings", "read_source", "text"]


class Method(NamedTuple):
    """A registered method."""

    run: MethodFunction  # the generator function
    # Its requirements: "embeddings" (it yields `Embed`), "read_source" (it yields `ReadSources`), "text" (it parses
    # replies, so the model must return text, not objects).
    needs: frozenset[Need] = frozenset()
    nests: bool = False  # whether it runs `inner_method`


@cache
def _imported(name: str) -> MethodFunction:
    return getattr(import_module(f"oprag.methods.{name}"), name)  # type: ignore[no-any-return]


def _built_in(name: str, *needs: Need, nests: bool = False) -> Method:
    """A method of this package, whose module is imported on first use."""

    def run(task: Task) -> Generator[Any, Any, Result]:
        return _imported(name)(task)

    return Method(run, frozenset(needs), nests)


_methods = {
    "stuff": _built_in("stuff"),
    "map_reduce": _built_in("map_reduce"),
    "refine": _built_in("refine"),
    "map_rerank": _built_in("map_rerank", "text"),
    "step_down": _built_in("step_down", "text", nests=True),
    "reciprocal": _built_in("reciprocal", "embeddings", "text", nests=True),
    "long_context": _built_in("long_context", "read_source"),
    "self_route": _built_in("self_route", "read_source", "text"),
}
OUR_METHODS = tuple(_methods)
"""The names of the built-in methods."""


def register_method(name: str, method: MethodFunction, *, needs: Collection[Need] = (), nests: bool = False) -> None:
    """Register a custom method for chains, engines and comparisons.

    Args:
        name: Name of the method.
        method: A generator function that takes a `Task`, yields requests and returns a `Result`.
        needs: Its requirements: "embeddings" if it yields `Embed`, "read_source" if it yields `ReadSources`, "text" if
            it parses replies. Checked when a chain or an engine is created.
        nests: Whether it runs `inner_method`.

    Raises:
        OptionError: The name is empty or already registered, `method` is not a function, or a requirement is unknown.

    Example:
        >>> from oprag.methods import Generate, Result, Retrieve, nothing_found
        >>> def twice(task):
        ...     "Ask, then ask to check the answer."
        ...     (context,) = yield Retrieve((task.question,))
        ...     if not context.text.strip():
        ...         return nothing_found(task.options.empty_answer, context)
        ...     (draft,) = yield Generate((task.prompt("answer", context=context.text),))
        ...     checked = task.prompt("refine", existing_answer=draft.text, context=context.text)
        ...     (answer,) = yield Generate((checked,), final=True)
        ...     return Result(answer.text, (context,), passages=context.passages)
        >>> register_method("twice", twice)
        >>> "twice" in method_names()
        True
    """
    value: Any = name
    if not isinstance(value, str) or not value:
        raise OptionError(f"the name of a method must be a non-empty string, got {describe(name)}", name)
    if not callable(method):
        raise OptionError(f"a method must be a generator function of a Task, got {describe(method)}", method)
    if name in OUR_METHODS or (name in _methods and not _is_redefinition(_methods[name].run, method)):
        raise OptionError(f"a method named {name!r} already exists; use a different name", name)
    unknown = set(needs) - set(get_args(Need))
    if unknown:
        raise OptionError(
            f"needs may contain only {', '.join(get_args(Need))}, got {', '.join(sorted(map(str, unknown)))}", needs
        )
    _methods[name] = Method(method, frozenset(needs), nests)


def _is_redefinition(known: MethodFunction, method: MethodFunction) -> bool:
    """Whether it is the same function, or a redefinition, such as by running a notebook cell again."""
    old, new = [
        (getattr(function, "__module__", ""), getattr(function, "__qualname__", "<none>"))
        for function in (known, method)
    ]
    return old == new and "<" not in new[1]


def method_names() -> list[str]:
    """The names of all registered methods, built-in ones first."""
    return list(_methods)


def find_method(name: str) -> Method:
    """Return the method with this name."""
    try:
        return _methods[name]
    except (KeyError, TypeError):
        raise OptionError(f"unknown method {name!r}; expected one of {', '.join(_methods)}", name) from None


def check_needs(
    options: MethodOptions,
    *,
    embeddings: bool,
    read_source: bool,
    text: bool = True,
    embedder_option: str = "embeddings",
) -> None:
    """Reject a method whose requirements are not met, before any model call."""
    method = find_method(options.method)
    needs_by_name = {options.method: method.needs}
    if method.nests:
        inner = find_method(options.inner_method)
        if inner.nests:
            raise OptionError(
                f"inner_method={options.inner_method!r} has an inner method itself, which would recurse endlessly; use "
                "another one, such as stuff",
                options.inner_method,
            )
        needs_by_name[options.inner_method] = inner.needs
    if "map_rerank" in needs_by_name and options.rank_by == "cosine" and not embeddings:
        raise OptionError(f'rank_by="cosine" requires {embedder_option}; pass {embedder_option}=...', options.rank_by)
    pass_embedder = f"{embedder_option}, to compare answers with the question; pass {embedder_option}=..."
    problems: dict[Need, tuple[bool, str]] = {
        "text": (
            text,
            "parses the model's text, but this model returns objects; pass a model without structured output",
        ),
        "embeddings": (embeddings, f"requires {pass_embedder}"),
        "read_source": (read_source, f"requires read_source, to read whole sources; {_READER_HINT}"),
    }
    for name, needs in needs_by_name.items():
        for need, (met, problem) in problems.items():
            if need in needs and not met:
                raise OptionError(f"method {name!r} {problem}", name)
