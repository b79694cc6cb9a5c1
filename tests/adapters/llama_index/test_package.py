"""The package: what it exports, what it imports, and what it says when LlamaIndex is missing."""

from __future__ import annotations

from pathlib import Path

import llama_index.core
import pytest

import oprag.llama_index
from oprag import ContextOptions
from oprag.methods import MethodOptions
from tests.helpers import declared_descriptions, run_python, shown_after_import

ASSEMBLY, METHODS = declared_descriptions(ContextOptions), declared_descriptions(MethodOptions)
SHARED = {
    *(*ASSEMBLY, "annotate", "callback_manager"),
    *("embed_model", "vector_cache", "read_neighbors", "index", "read_source", "store_order"),
}
OPTIONS = {
    "OrderPreservingPostprocessor": SHARED,
    "OrderPreservingQueryEngine": {
        *(*SHARED, *METHODS),
        *("llm", "retriever", "node_postprocessors", "read_source", "streaming"),
    },
    "OrderPreservingRetriever": SHARED | {"retriever"},
    "StampPositions": {"source", "source_key"},
}
REQUIRED = {"OrderPreservingQueryEngine": ["retriever"], "OrderPreservingRetriever": ["retriever"]}


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
    advice = "requires an optional dependency; install it with: pip install 'oprag[llama-index]'"
    assert said.strip() == f"MissingExtraError oprag.llama_index {advice}"


@pytest.mark.process
def test_langchain_is_not_imported():
    loaded = run_python("import sys, oprag.llama_index; print({name.split('.')[0] for name in sys.modules})")
    assert "llama_index" in loaded
    assert "langchain" not in loaded


@pytest.mark.process
def test_signatures_and_help_have_every_option_from_the_import_on():
    shown = shown_after_import("oprag.llama_index")
    # An agent takes what LlamaIndex's does.
    agent = shown.pop("OrderPreservingFunctionAgent")
    assert {"layout", "compact_above"} < set(agent["parameters"])
    assert "layout: " in agent["help"]
    # An embedding model has LlamaIndex's options.
    assert set(shown) - {"LocalEmbedding"} == set(OPTIONS)
    for name, options in OPTIONS.items():
        assert shown[name]["parameters"] == dict.fromkeys(options, "KEYWORD_ONLY"), name
        assert shown[name]["required"] == REQUIRED.get(name, []), name
        assert all(f"{option}: " in shown[name]["help"] for option in options), name


def test_every_option_is_described_in_the_words_of_its_declaration():
    for name, options in OPTIONS.items():
        fields = getattr(oprag.llama_index, name).model_fields
        described = {option: fields[option].description for option in options - {"callback_manager"}}
        assert all(isinstance(text, str) and text.endswith(".") for text in described.values()), described
        declared = ASSEMBLY | (METHODS if "method" in options else {})
        of_assembly = {option: text for option, text in declared.items() if option in options}
        assert {option: described[option] for option in of_assembly} == of_assembly
        assert len(of_assembly) == {"StampPositions": 1}.get(name, len(declared)), name
