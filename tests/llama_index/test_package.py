"""The package: what it exports, what it imports, and what it says when LlamaIndex is missing."""

from __future__ import annotations

from pathlib import Path

import llama_index.core

import oprag.llama_index
from tests.helpers import run_python


def test_tests_of_this_name_do_not_hide_llama_index():
    assert Path(llama_index.core.__file__).parent.parent != Path(__file__).parent
    assert str(Path(__file__).parent) not in list(llama_index.__path__)


def test_exports_are_sorted_and_exist():
    names = oprag.llama_index.__all__
    assert names == sorted(names)
    assert all(hasattr(oprag.llama_index, name) for name in names)


def test_missing_llama_index_is_one_sentence_with_the_pip_command():
    said = run_python("""
import sys
sys.modules["llama_index.core"] = None
try:
    import oprag.llama_index
except ImportError as error:
    print(type(error).__name__, error)
""")
    assert (
        said.strip()
        == "MissingExtraError oprag.llama_index needs an optional dependency: pip install 'oprag[llama-index]'"
    )


def test_langchain_is_not_imported():
    loaded = run_python("import sys, oprag.llama_index; print({name.split('.')[0] for name in sys.modules})")
    assert "llama_index" in loaded
    assert "langchain" not in loaded
