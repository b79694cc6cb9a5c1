"""The examples as they stand in the documents: each is a file that a test runs."""

from __future__ import annotations

import ast
from pathlib import Path

__all__ = ["EXAMPLES", "example_block"]

EXAMPLES = Path(__file__).parent.parent / "examples"

_COMPARED = ("before", "after", "rank_order", "source_ranking")
"""The names that an example gives to what it compares; these lines are highlighted."""


def example_block(path: Path) -> str:
    """The code of an example, without the docstring that says what to install."""
    text = path.read_text(encoding="utf-8")
    docstring, *statements = ast.parse(text).body
    code = text.splitlines()[docstring.end_lineno :]
    blank = next(number for number, line in enumerate(code) if line)
    first = (docstring.end_lineno or 0) + blank
    shown = [
        "-".join(str(number - first) for number in sorted({one.lineno, one.end_lineno or one.lineno}))
        for statement in statements
        for one in ast.walk(statement)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name) and one.targets[0].id in _COMPARED
    ]
    return "\n".join([f'```python hl_lines="{" ".join(shown)}"', *code[blank:], "```", ""])
