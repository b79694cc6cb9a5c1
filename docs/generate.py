"""Write what comes from code into the documents; a test fails when they differ.

Run with: python -m docs.generate
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

import oprag.langchain
import oprag.llama_index
from docs.example_code import EXAMPLES, example_block
from docs.help_texts import help_texts
from oprag import ContextOptions, approximate_tokens
from oprag.adapters.fields import ContextFields
from oprag.compare.grid import axes
from oprag.compare.metrics import functions
from oprag.compare.metrics.registry import METRICS
from oprag.methods import MethodOptions
from oprag.options import descriptions
from oprag.positions.fields import LAYOUTS

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCUMENTS = (README, *sorted((ROOT / "docs").rglob("*.md")))


def options_table(kind: Any) -> str:
    """The options of a dataclass as a Markdown table."""
    rows = ["| option | default | what it does |", "|---|---|---|"]
    told = descriptions(kind)
    for field in fields(kind):
        default = _SHOWN.get(field.name, repr(field.default))
        rows.append(f"| `{field.name}` | `{default}` | {told[field.name]} |")
    return "\n".join(rows) + "\n"


def fields_table(package: ModuleType) -> str:
    """The options of the classes of a package as a Markdown table, but for shared ones that have the same default."""
    shown: dict[str, list[str]] = {}
    for name in package.__all__:
        cls = getattr(package, name)
        for row in _rows(cls) if hasattr(cls, "model_fields") else ():
            shown.setdefault(row, []).append(name)
    every = max(shown.values(), key=len)
    rows = ["| option | default | what it does | of |", "|---|---|---|---|"]
    first = sorted(shown.items(), key=lambda item: item[1] != every)
    rows += [f"{row} {'' if names == every else ', '.join(names)} |" for row, names in first]
    return "\n".join([*rows, "", f"Without a class in the last column: of {', '.join(every)}."]) + "\n"


def _rows(cls: type[BaseModel]) -> Iterator[str]:
    """The first cells of the rows of a class."""
    shared = (ContextOptions, MethodOptions) if issubclass(cls, ContextFields) else ()
    elsewhere = {field.name: field.default for kind in shared for field in fields(kind)}
    bases = [base for base in cls.__mro__ if not base.__module__.startswith("oprag")]
    described = [(name, field) for base in bases for name, field in getattr(base, "model_fields", {}).items()]
    of_framework = {name for name, field in described if field.description is not None}
    for name, field in cls.model_fields.items():
        # Most of the framework's own have no description.
        ours = field.description is not None and name not in of_framework
        if ours and elsewhere.get(name, _NOWHERE) != field.default:
            default = f"`{_SHOWN.get(name, repr(field.default))}`"
            if field.default_factory is not None:
                default = ""
            elif field.is_required():
                default = "required"
            yield f"| `{name}` | {default} | {field.description} |"


_NOWHERE = object()
_SHOWN = {"count_tokens": approximate_tokens.__name__, "prompts": "Prompts()"}


def layouts_table() -> str:
    """The fields of other tools as a Markdown table."""
    rows = ["| tool | field | read as |", "|---|---|---|"]
    rows += [
        f"| {tool} | `{'.'.join(map(str, path))}` | `{field}` |"
        for tool, paths in LAYOUTS.items()
        for path, field in paths.items()
    ]
    return "\n".join(rows) + "\n"


def axes_table() -> str:
    """The axes of an experiment as a Markdown table, and the names of those that are options elsewhere."""
    rows = ["| axis | default | what it is |", "|---|---|---|"]
    for axis in axes().values():
        if axis.part == "parts":
            default = "" if axis.default is None else f"`{json.dumps(axis.default)}`"
            rows.append(f"| `{axis.name}` | {default} | {axis.help} |")
    options = ", ".join(f"`{axis.name}`" for axis in axes().values() if axis.part != "parts")
    return "\n".join([*rows, "", f"The others are [options](options.md) with the same defaults: {options}."]) + "\n"


def metrics_table() -> str:
    """The metrics of an experiment as a Markdown table."""
    rows = ["| metric | what it is |", "|---|---|"]
    for name in METRICS:
        function = getattr(functions, name)
        what = (function.__doc__ or "").partition("\n")[0]
        rows.append(f"| `{name}` | {what} |")
    return "\n".join(rows) + "\n"


def versions_table() -> str:
    """The supported versions from the package metadata, as a Markdown table."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    versions = ", ".join(_PYTHON.findall("\n".join(project["classifiers"])))
    rows = ["| | supported |", "|---|---|", f"| Python | {versions} |"]
    for requirement in dict.fromkeys([*project["dependencies"], *extras["langchain"], *extras["llama-index"]]):
        name, first, rest = re.split(r"([<>=~!])", requirement, maxsplit=1)
        rows.append(f"| {name} | `{first}{rest}` |")
    return "\n".join(rows) + "\n"


_PYTHON = re.compile(r"^Programming Language :: Python :: (\S+)$", re.MULTILINE)


def introduction() -> str:
    """The introduction of the README."""
    return README.read_text(encoding="utf-8").partition("\n\n")[2].partition("\n## ")[0] + "\n"


PARTS: dict[str, Callable[[], str]] = {
    "options": partial(options_table, ContextOptions),
    "method options": partial(options_table, MethodOptions),
    "axes": axes_table,
    "layouts": layouts_table,
    "metrics": metrics_table,
    "versions": versions_table,
    "introduction": introduction,
    "help texts": help_texts,
    **{
        f"options of {package.__name__}": partial(fields_table, package)
        for package in (oprag.langchain, oprag.llama_index)
    },
    **{f"example {path.stem}": partial(example_block, path) for path in sorted(EXAMPLES.glob("*.py"))},
}
"""What makes each part, by the name between whose marks it stands."""


def generated(document: str) -> str:
    """The text of a document with the generated parts as they should be."""
    for name, part in PARTS.items():
        if f"<!-- {name} -->" in document:
            between = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
            document = between.sub(part().replace("\\", r"\\"), document)
    return document


if __name__ == "__main__":
    for path in DOCUMENTS:
        path.write_text(generated(path.read_text(encoding="utf-8")), encoding="utf-8")
