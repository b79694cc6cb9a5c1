"""The examples as they appear in the documentation: each is a file that a test runs."""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["EXAMPLES", "example_block"]

EXAMPLES = Path(__file__).parent.parent / "examples"

_COMPARED = ("before", "after")
"""Variables that an example compares; their lines are highlighted."""


def example_block(path: Path) -> str:
    """The code of an example, without its docstring, under the name of its file."""
    text = path.read_text(encoding="utf-8")
    docstring, *statements = ast.parse(text).body
    code = text.splitlines()[docstring.end_lineno :]
    blank = next(number for number, line in enumerate(code) if line)
    first = (docstring.end_lineno or 0) + blank
    highlighted = [
        "-".join(str(number - first) for number in sorted({one.lineno, one.end_lineno or one.lineno}))
        for one in statements
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and one.targets[0].id in _COMPARED
    ]
    lines = f' hl_lines="{" ".join(highlighted)}"' if highlighted else ""
    return "\n".join([f'```python title="{path.name}"{lines}', *code[blank:], "```", ""])
