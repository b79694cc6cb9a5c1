"""Execute the notebooks of the examples and store what they print; a test fails when it differs.

Run with: python -m docs.notebooks
"""

from __future__ import annotations

import io
import json
import platform
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from docs.example_code import EXAMPLES

__all__ = ["NOTEBOOKS", "executed"]

NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def executed(path: Path) -> str:
    """The text of a notebook with the outputs of this run; printed text only."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile("".join(cell["source"]), f"{path.name}, {cell['id']}", "exec"), names)  # noqa: S102
            text = printed.getvalue().splitlines(keepends=True)
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
    notebook["metadata"]["language_info"]["version"] = platform.python_version()
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for notebook in NOTEBOOKS:
        notebook.write_text(executed(notebook), encoding="utf-8")
