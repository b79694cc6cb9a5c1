"""The help texts of the command line as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer.main

from oprag.cli.app import app

__all__ = ["help_texts"]


def help_texts() -> str:
    """Every command with its help, its arguments and its options, as the command line itself has them."""
    root: Any = typer.main.get_command(app)
    lines = [_one_line(root.help), "", *_option_tables(root)]
    for name, command in root.commands.items():
        lines += [f"## oprag {name}", "", "```text", _usage(name, command), "```", ""]
        for paragraph in command.help.split("\n\n"):
            lines += [_one_line(paragraph), ""]
        lines += [*_table("argument", [one for one in command.params if one.param_type_name == "argument"]), ""]
        lines += _option_tables(command)
    return "\n".join(lines)


def _options(command: Any) -> list[Any]:
    # Shells complete with the options of Typer, whose texts differ from one release to the next.
    return [one for one in command.params if one.param_type_name == "option" and "completion" not in one.name]


def _option_tables(command: Any) -> Iterator[str]:
    """A table for each panel of the help, in its sequence."""
    panels: dict[str, list[Any]] = {"": []}
    for one in _options(command):
        panels.setdefault(one.rich_help_panel or "", []).append(one)
    for name, options in panels.items():
        if options:
            yield from (f"**{name}**", "") if name else ()
            yield from _table("option", options)
            yield ""


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
        names = _argument(one) if kind == "argument" else ", ".join([*one.opts, *one.secondary_opts])
        cells = [f"`{names}`", *([default] if any(defaults) else []), _in_cell(one.help)]
        yield f"| {' | '.join(cells)} |"


def _default(parameter: Any) -> str:
    """The value without the option; none for what is off or left out then."""
    if parameter.secondary_opts:
        return f"`{(parameter.opts if parameter.default else parameter.secondary_opts)[0]}`"
    return "" if parameter.default is None or parameter.default is False else f"`{parameter.default}`"


def _in_cell(text: str) -> str:
    return _one_line(text).replace("|", r"\|")


def _one_line(text: str) -> str:
    """On one line, with what Markdown would take for HTML or for an escape as it stands."""
    return " ".join(text.split()).replace("<", "&lt;").replace("\\", "\\\\")
