"""The docstrings of public names document every argument by its name."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any, get_origin

import pytest

from oprag.adapters.fields import METHOD_OPTIONS, OPTIONS

MODULES = [
    "oprag",
    "oprag.compare",
    "oprag.langchain",
    "oprag.llama_index",
    "oprag.mcp",
    "oprag.methods",
    "oprag.methods.profile",
    "oprag.stores",
]


def is_ours(value: Any) -> bool:
    return str(getattr(value, "__module__", "")).partition(".")[0] == "oprag"


def documented(value: Any) -> set[str]:
    """The names in the sections for arguments; a class documents its fields as either, or in their metadata."""
    lines = (inspect.getdoc(value) or "").splitlines()
    names = {field.name for field in fields(value) if "help" in field.metadata} if is_dataclass(value) else set()
    within = False
    for line in lines:
        if line and not line.startswith(" "):
            within = line in {"Args:", "Attributes:"}
        elif within and (name := re.match(r" {4}\*{0,2}(\w+):", line)):
            names.add(name[1])
    return names


def arguments(value: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(value).parameters if name not in {"self", "cls"}]


def of_framework(cls: type) -> list[type]:
    return [base for base in cls.__mro__ if not is_ours(base) and base is not object]


def of_class(cls: type) -> list[str]:
    """The arguments of a class, without those that its framework defines."""
    inherited = {name for base in of_framework(cls) for name in getattr(base, "model_fields", {})}
    if issubclass(cls, dict):
        # What a state has in place of arguments.
        bases = [get_origin(base) or base for base in getattr(cls, "__orig_bases__", ())]
        return [name for name in cls.__annotations__ if not any(name in base.__annotations__ for base in bases)]
    names = [name for name in arguments(cls) if name not in inherited]
    if "options" in documented(cls):
        # As `**options`, where they are named in one sentence.
        names = [name for name in names if name not in {*OPTIONS, *METHOD_OPTIONS}]
    return names


def methods(cls: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public methods that we define, but for overrides with the arguments of the framework's own."""
    for base in filter(is_ours, cls.__mro__):
        for name, value in vars(base).items():
            function = getattr(base, name) if isinstance(value, classmethod | staticmethod) else value
            if name.startswith("_") or not (inspect.isfunction(function) or inspect.ismethod(function)):
                continue
            if not is_ours(function) or function.__qualname__ != f"{base.__qualname__}.{name}":
                continue
            overridden = [getattr(one, name) for one in of_framework(cls) if hasattr(one, name)]
            if not any(set(arguments(function)) <= set(arguments(one)) for one in overridden):
                yield f"{base.__module__}.{base.__qualname__}.{name}", function


def public() -> dict[str, tuple[Any, list[str]]]:
    """Every public class, function and method by its name, with its arguments."""
    found: dict[str, tuple[Any, list[str]]] = {}
    for module in map(import_module, MODULES):
        for value in (getattr(module, name) for name in module.__all__):
            if not is_ours(value) or not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            name = f"{value.__module__}.{value.__qualname__}"
            if inspect.isfunction(value):
                found[name] = value, arguments(value)
                continue
            if not issubclass(value, BaseException | Enum) and not getattr(value, "_is_protocol", False):
                found[name] = value, of_class(value)
            found.update({name: (method, arguments(method)) for name, method in methods(value)})
    return found


PUBLIC = public()


@pytest.mark.parametrize("name", PUBLIC)
def test_every_argument_is_documented(name: str):
    value, names = PUBLIC[name]
    described = inspect.getdoc(value) or ""
    assert described
    # One that does the same as another, such as its async version, refers to it.
    if not re.match(r"(\w+ )?[Vv]ersion of `", described):
        assert set(names) <= documented(value)


def test_what_is_documented_exists():
    gone = {
        name: left
        for name, (value, _) in PUBLIC.items()
        if inspect.isfunction(value) and (left := documented(value) - set(arguments(value)))
    }
    assert gone == {}
