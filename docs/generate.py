"""Write the table of options into README.md; a test fails when it differs from the code.

Run with: python -m docs.generate
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from oprag import Assembly, approximate_tokens

README = Path(__file__).parent.parent / "README.md"
_OPTIONS = re.compile(r"(?<=<!-- options -->\n).*?(?=<!-- /options -->)", re.DOTALL)


def options_table() -> str:
    """The options of `Assembly` as a Markdown table."""
    rows = ["| option | default | what it does |", "|---|---|---|"]
    for field in fields(Assembly):
        default = "approximate_tokens" if field.default is approximate_tokens else repr(field.default)
        function = field.metadata["function"]
        can_be = f" Or a function that {function}." if function else ""
        rows.append(f"| `{field.name}` | `{default}` | {field.metadata['help']}{can_be} |")
    return "\n".join(rows) + "\n"


def generated(readme: str) -> str:
    """The text of the README with the generated parts as they should be."""
    return _OPTIONS.sub(lambda _: options_table(), readme)


if __name__ == "__main__":
    README.write_text(generated(README.read_text(encoding="utf-8")), encoding="utf-8")
