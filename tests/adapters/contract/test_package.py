"""The packages of the frameworks: what they export, what they import, and what they say when a package is missing."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Any

import langchain
import llama_index.core
import pytest
from pydantic import Field

from oprag import ContextOptions
from oprag.langchain import OrderPreservingRetriever
from oprag.methods import MethodOptions
from tests.helpers import declared_descriptions, run_python, shown_after_import

ASSEMBLY, METHODS = declared_descriptions(ContextOptions), declared_descriptions(MethodOptions)
SHARED = {*ASSEMBLY, "annotate", "vector_cache", "read_neighbors", "read_source"}
LANGCHAIN = {*SHARED, "embeddings"}
SEARCHED = {"retriever", "vectorstore", "search_type", "search_kwargs", "store_order"}
LLAMA_INDEX = {*SHARED, "embed_model", "index", "store_order", "callback_manager"}
OPTIONS: dict[str, dict[str, set[str]]] = {
    "oprag.langchain": {
        "DocumentIndexRetriever": {"index", "k", "search"},
        "OrderPreservingChain": {
            *(*LANGCHAIN, *SEARCHED, *METHODS),
            *("llm", "input_key", "output_key", "documents_key", "citations_key", "message_key"),
        },
        "OrderPreservingCompressor": LANGCHAIN,
        "OrderPreservingRetriever": LANGCHAIN | SEARCHED,
    },
    "oprag.llama_index": {
        "OrderPreservingPostprocessor": LLAMA_INDEX,
        "OrderPreservingQueryEngine": {*LLAMA_INDEX, *METHODS, "llm", "retriever", "node_postprocessors", "streaming"},
        "OrderPreservingRetriever": LLAMA_INDEX | {"retriever"},
        "StampPositions": {"source", "source_key"},
    },
}
REQUIRED = {
    "oprag.langchain": {"DocumentIndexRetriever": ["index"], "OrderPreservingChain": ["llm"]},
    "oprag.llama_index": {"OrderPreservingQueryEngine": ["retriever"], "OrderPreservingRetriever": ["retriever"]},
}
OF_LANGCHAIN = {"name", "tags", "metadata"}
# Those that have the options of a class of the framework.
OF_LLAMA_INDEX = {"OrderPreservingFunctionAgent", "LocalEmbedding"}

each_package = pytest.mark.parametrize("package", OPTIONS)


def test_folders_of_this_name_do_not_hide_the_frameworks():
    for framework in (langchain, llama_index.core):
        assert "site-packages" in Path(str(framework.__file__)).parts


@each_package
def test_the_public_names_are_sorted_and_there(package: str):
    names = import_module(package).__all__
    assert names == sorted(names)
    assert all(hasattr(import_module(package), name) for name in names)


@pytest.mark.process
@pytest.mark.parametrize(
    ("missing", "imported", "what", "extra"),
    [
        ("langchain", "oprag.langchain.middleware", "OrderPreservingMiddleware", "langchain"),
        ("langchain_core", "oprag.langchain", "oprag.langchain", "langchain"),
        ("llama_index.core", "oprag.llama_index", "oprag.llama_index", "llama-index"),
    ],
)
def test_a_missing_framework_is_one_sentence_with_the_command(missing: str, imported: str, what: str, extra: str):
    said = run_python(f"""
import sys
sys.modules[{missing!r}] = None
try:
    import {imported}
except ImportError as error:
    print(type(error).__name__, error)
""")
    advice = f"requires an optional dependency; install it with: pip install 'oprag[{extra}]'"
    assert said.strip() == f"MissingExtraError {what} {advice}"


@pytest.mark.process
def test_each_package_imports_its_own_framework_alone():
    loaded = run_python("import sys, oprag.llama_index; print({name.split('.')[0] for name in sys.modules})")
    assert "langchain" not in loaded
    # Graphs of one's own need only langchain-core.
    assert run_python("""
import sys
sys.modules["langchain"] = None
from oprag.langchain import create_search_tool, gather_search_results, lay_out_messages, working_context_of
print(gather_search_results({"messages": []}), "llama_index" in sys.modules)
""").split() == ["{}", "False"]


@pytest.mark.process
@each_package
def test_signatures_and_help_have_every_option_from_the_import_on(package: str):
    shown = shown_after_import(package)
    assert set(shown) - OF_LLAMA_INDEX == set(OPTIONS[package])
    for name, options in OPTIONS[package].items():
        parameters: dict[str, Any] = shown[name]["parameters"]
        assert set(parameters) - OF_LANGCHAIN == options, name
        # No *args, since positional arguments are refused.
        assert set(parameters.values()) == {"KEYWORD_ONLY"}, name
        assert shown[name]["required"] == REQUIRED[package].get(name, []), name
        assert all(f"{option}: " in shown[name]["help"] for option in options), name


@each_package
def test_every_option_is_described_in_the_words_of_its_declaration(package: str):
    for name, options in OPTIONS[package].items():
        fields = getattr(import_module(package), name).model_fields
        described = {option: fields[option].description for option in options - {"callback_manager"}}
        assert all(isinstance(text, str) and text.endswith(".") for text in described.values()), described
        declared = ASSEMBLY | (METHODS if "method" in options else {})
        # Its k is that of a search.
        declared = {} if name == "DocumentIndexRetriever" else declared
        assert {option: text for option, text in described.items() if option in declared} == {
            option: text for option, text in declared.items() if option in options
        }


def test_the_signature_of_a_subclass_has_its_own_options_too():
    class Labelled(OrderPreservingRetriever):
        label: str = Field(default="", description="A label.")

    given = OPTIONS["oprag.langchain"]["OrderPreservingRetriever"]
    assert set(inspect.signature(Labelled).parameters) - OF_LANGCHAIN == given | {"label"}
