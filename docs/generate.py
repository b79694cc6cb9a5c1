"""Write the tables of options into the documents; a test fails when they differ from the code.

Run with: python -m docs.generate
"""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

from oprag import Assembly, approximate_tokens
from oprag.methods import MethodOptions

ROOT = Path(__file__).parent.parent
TABLES: dict[str, Any] = {"options": Assembly, "method options": MethodOptions}
"""The dataclass of each table, by the name between whose marks it stands."""
DOCUMENTS = (ROOT / "README.md", ROOT / "docs" / "methods.md")


def options_table(kind: Any) -> str:
    """The options of a dataclass as a Markdown table."""
    rows = ["| option | default | what it does |", "|---|---|---|"]
    for field in fields(kind):
        default = _SHOWN.get(field.name, repr(field.default))
        function = field.metadata["function"]
        can_be = f" Or a function that {function}." if function else ""
        rows.append(f"| `{field.name}` | `{default}` | {field.metadata['help']}{can_be} |")
    return "\n".join(rows) + "\n"


_SHOWN = {"count_tokens": approximate_tokens.__name__, "prompts": "Prompts()"}


def generated(document: str) -> str:
    """The text of a document with the generated parts as they should be."""
    for name, kind in TABLES.items():
        part = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
        table = options_table(kind)
        document = part.sub(table.replace("\\", r"\\"), document)
    return document


if __name__ == "__main__":
    for path in DOCUMENTS:
        path.write_text(generated(path.read_text(encoding="utf-8")), encoding="utf-8")
