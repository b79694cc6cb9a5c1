"""This folder has the name of the package that it is about, and must not hide it."""

import inspect
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest
from pydantic import Field

import oprag.langchain
from oprag import ContextOptions
from oprag.errors import MissingExtraError
from oprag.langchain import OrderPreservingRetriever
from oprag.methods import MethodOptions
from tests.helpers import declared_descriptions, shown_after_import

ASSEMBLY, METHODS = declared_descriptions(ContextOptions), declared_descriptions(MethodOptions)
SHARED = {*ASSEMBLY, "annotate", "embeddings", "vector_cache", "read_neighbors", "read_source"}
SEARCHED = ("retriever", "vectorstore", "search_type", "search_kwargs")
OPTIONS = {
    "DocumentIndexRetriever": {"index", "k", "search"},
    "OrderPreservingChain": {
        *(*SHARED, *METHODS),
        *(
            "llm",
            *SEARCHED,
            "read_source",
            "input_key",
            "output_key",
            "documents_key",
            "citations_key",
            "message_key",
            "store_order",
        ),
    },
    "OrderPreservingCompressor": SHARED,
    "OrderPreservingRetriever": SHARED | {*SEARCHED, "store_order"},
}
OF_LANGCHAIN = {"name", "tags", "metadata"}
REQUIRED = {"DocumentIndexRetriever": ["index"], "OrderPreservingChain": ["llm"]}


def test_langchain_is_the_real_one():
    assert import_module("langchain").__version__ == version("langchain")


def test_the_public_names_are_sorted_and_there():
    assert oprag.langchain.__all__ == sorted(oprag.langchain.__all__)
    assert all(hasattr(oprag.langchain, name) for name in oprag.langchain.__all__)


def test_without_langchain_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain.agents.middleware", None)
    monkeypatch.delitem(sys.modules, "oprag.langchain.middleware", raising=False)
    with pytest.raises(MissingExtraError) as caught:
        import_module("oprag.langchain.middleware")
    assert (
        str(caught.value)
        == "OrderPreservingMiddleware requires an optional dependency; install it with: pip install 'oprag[langchain]'"
    )


@pytest.mark.process
def test_without_langchain_graphs_of_ones_own_have_everything_else():
    code = (
        "import sys; sys.modules['langchain'] = None\n"
        "from oprag.langchain import create_search_tool, gather_search_results, lay_out_messages, working_context_of\n"
        "print(gather_search_results({'messages': []}))\n"
        "try: from oprag.langchain import OrderPreservingMiddleware\n"
        "except ImportError as error: print(error)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    advice = "requires an optional dependency; install it with: pip install 'oprag[langchain]'"
    assert output == f"{{}}\nOrderPreservingMiddleware {advice}\n"


@pytest.mark.process
def test_signatures_and_help_have_every_option_from_the_import_on():
    shown = shown_after_import("oprag.langchain")
    assert set(shown) == set(OPTIONS)
    for name, options in OPTIONS.items():
        assert set(shown[name]["parameters"]) - OF_LANGCHAIN == options, name
        # No *args, since positional arguments are refused.
        assert set(shown[name]["parameters"].values()) == {"KEYWORD_ONLY"}, name
        assert shown[name]["required"] == REQUIRED.get(name, []), name
        assert all(f"{option}: " in shown[name]["help"] for option in options), name


def test_every_option_is_described_in_the_words_of_its_declaration():
    for name, options in OPTIONS.items():
        fields = getattr(oprag.langchain, name).model_fields
        described = {option: fields[option].description for option in options}
        assert all(isinstance(text, str) and text.endswith(".") for text in described.values()), described
        declared = {} if name == "DocumentIndexRetriever" else ASSEMBLY | (METHODS if "method" in options else {})
        assert {option: described[option] for option in declared} == declared


def test_the_signature_of_a_subclass_has_its_own_options_too():
    class Labelled(OrderPreservingRetriever):
        label: str = Field(default="", description="A label.")

    assert set(inspect.signature(Labelled).parameters) - OF_LANGCHAIN == OPTIONS["OrderPreservingRetriever"] | {"label"}
