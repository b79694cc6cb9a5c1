"""The help texts of the command line as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main

from oprag import ContextOptions
from oprag.cli.app import app
from oprag.methods import MethodOptions
from oprag.options import descriptions

__all__ = ["help_texts"]


def help_texts() -> str:
    """Every command with its help, its arguments and its options, as the command line itself has them."""
    root: Any = typer.main.get_command(app)
    places: dict[str, str] = {}
    lines = [_one_line(root.help), "", *_option_tables(root, places)]
    for name, command in root.commands.items():
        lines += [f"## oprag {name}", "", "```text", _usage(name, command), "```", ""]
        for paragraph in command.help.split("\n\n"):
            lines += [_one_line(paragraph), ""]
        lines += [*_table("argument", [one for one in command.params if one.param_type_name == "argument"]), ""]
        lines += _option_tables(command, places)
    return "\n".join(lines)


def _options(command: Any) -> list[Any]:
    # Shells complete with the options of Typer, whose texts differ from one release to the next.
    return [one for one in command.params if one.param_type_name == "option" and "completion" not in one.name]


def _option_tables(command: Any, places: dict[str, str]) -> Iterator[str]:
    """A table of the options, and the names of those that another page or an earlier command describes."""
    own: list[Any] = []
    elsewhere: dict[str, list[str]] = {}
    for one in _options(command):
        row = f"{_names(one)} {_default(one)} {one.help}"
        place = "[options](options.md)" if _is_of_context_or_method(one) else places.get(row)
        if place is not None:
            elsewhere.setdefault(place, []).append(f"`{_names(one)}`")
        else:
            places[row] = f"[oprag {command.name}](#oprag-{command.name})"
            own.append(one)
    if own:
        yield from (*_table("option", own), "")
    for place, names in elsewhere.items():
        yield from (f"As in {place}: {', '.join(names)}", "")


def _is_of_context_or_method(option: Any) -> bool:
    told = _TOLD.get(option.name)
    return told is not None and option.help.startswith(told.partition(". Or")[0].removesuffix("."))


_TOLD = descriptions(ContextOptions) | descriptions(MethodOptions)


def _usage(name: str, command: Any) -> str:
    arguments = [_argument(one) for one in command.params if one.param_type_name == "argument"]
    return " ".join(["oprag", name, *(["[OPTIONS]"] if _options(command) else []), *arguments])


def _argument(argument: Any) -> str:
    name = argument.name.upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _table(kind: str, parameters: list[Any]) -> Iterator[str]:
    if not parameters:
        return
    defaults = [_default(one) for one in parameters]
    yield f"| {kind} | default | what it is |" if any(defaults) else f"| {kind} | what it is |"
    yield "|---|---|---|" if any(defaults) else "|---|---|"
    for one, default in zip(parameters, defaults, strict=True):
        cells = [
            f"`{_argument(one) if kind == 'argument' else _names(one)}`",
            *([default] if any(defaults) else []),
            _in_cell(one.help),
        ]
        yield f"| {' | '.join(cells)} |"


def _names(option: Any) -> str:
    return ", ".join([*option.opts, *option.secondary_opts])


def _default(parameter: Any) -> str:
    """The value without the option; none for what is off or left out then."""
    return "" if parameter.default is None or parameter.default is False else f"`{parameter.default}`"


def _in_cell(text: str) -> str:
    return _one_line(text).replace("|", r"\|")


def _one_line(text: str) -> str:
    """On one line, with what Markdown would take for HTML or for an escape as it stands."""
    return " ".join(text.split()).replace("<", "&lt;").replace("\\", "\\\\")
