"""Write what comes from code into the documents; a test fails when they differ.

Run with: python -m docs.generate
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import oprag.langchain
import oprag.llama_index
from docs.example_code import EXAMPLES, example_block
from docs.help_texts import help_texts
from oprag import ContextOptions, approximate_tokens
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


def class_options_table() -> str:
    """The options that several classes of a framework have, besides those of contexts and methods."""
    rows = ["| option | of | default | what it does |", "|---|---|---|---|"]
    frameworks: dict[tuple[str, str, str], list[str]] = {}
    for framework, package in (("LangChain", oprag.langchain), ("LlamaIndex", oprag.llama_index)):
        classes = [getattr(package, name) for name in package.__all__]
        found = Counter(cells for cls in classes if hasattr(cls, "model_fields") for cells in _own_options(cls))
        for cells in (cells for cells, count in found.items() if count > 1):
            frameworks.setdefault(cells, []).append(framework)
    rows += [
        f"| `{name}` | {'both' if len(of) > 1 else of[0]} | {default} | {description} |"
        for (name, default, description), of in frameworks.items()
    ]
    return "\n".join(rows) + "\n"


def _own_options(cls: type[BaseModel]) -> Iterator[tuple[str, str, str]]:
    """The name, default and description of each option of a class."""
    shared = descriptions(ContextOptions) | descriptions(MethodOptions)
    bases = [base for base in cls.__mro__ if not base.__module__.startswith("oprag")]
    described = [(name, field) for base in bases for name, field in getattr(base, "model_fields", {}).items()]
    of_framework = {name for name, field in described if field.description is not None}
    for name, field in cls.model_fields.items():
        # Most of the framework's own have no description.
        if field.description is not None and name not in of_framework and name not in shared:
            default = "" if field.default_factory is not None else f"`{field.default!r}`"
            yield name, "required" if field.is_required() else default, field.description


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
    "class options": class_options_table,
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
