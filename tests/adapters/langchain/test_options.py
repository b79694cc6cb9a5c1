"""`ContextOptions` declares the options; the retriever and the compressor have the same names, defaults and
refusals."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from pydantic import BaseModel, ValidationError

from oprag import ContextOptions, OptionError
from oprag.langchain import OrderPreservingCompressor, OrderPreservingRetriever
from tests.adapters.langchain.conftest import QUESTION, giving, parts, store_of

DEFAULTS = {field.name: field.default for field in fields(ContextOptions)}


EMBEDDINGS = DeterministicFakeEmbedding(size=16)


def nothing_around(document: Any, number: int) -> list[Any]:
    return []


def compressor(**options: Any) -> OrderPreservingCompressor:
    return OrderPreservingCompressor(embeddings=EMBEDDINGS, read_neighbors=nothing_around, **options)


def over_retriever(**options: Any) -> OrderPreservingRetriever:
    return OrderPreservingRetriever(
        retriever=giving(parts()), embeddings=EMBEDDINGS, read_neighbors=nothing_around, **options
    )


def over_store(**options: Any) -> OrderPreservingRetriever:
    return OrderPreservingRetriever(vectorstore=store_of(parts()), read_neighbors=nothing_around, **options)


def words(text: str) -> int:
    return len(text.split())


def by_name(chunk: Any) -> Any:
    return chunk.metadata["source"]


def by_number(chunk: Any) -> Any:
    return chunk.metadata["chunk_index"]


def all_but_4(chunk: Any) -> Any:
    number = chunk.metadata["chunk_index"]
    return None if number == 4 else number


def titled(passage: Any) -> str:
    return f"# {passage.source}"


# The exceptions to equal defaults that the documentation names.
EXCEPTIONS: dict[Callable[..., BaseModel], dict[str, Any]] = {
    compressor: {"stitch": False},
    over_retriever: {"stitch": False},
    over_store: {"stitch": False, "k": 128, "token_budget": 16_384},
}
each_surface = pytest.mark.parametrize("make", EXCEPTIONS, ids=lambda make: make.__name__)

REFUSED: dict[str, list[Any]] = {
    "k": [0, -1, True, 1.0, "3", [3], float("nan")],
    "max_candidates": [0, -1, False, 2.5, "3"],
    "token_budget": [0, -5, True, 100.0, "100", float("inf")],
    "count_tokens": [None, 4, "gpt-4"],
    "order": ["sources", "", None, 1, ["source"], "Source"],
    "seed": [None, 1.0, "1", True],
    "source_ranking": ["first", None, 3, ["best_first"]],
    "on_missing_position": ["skip", None, True, 0],
    "source_key": ["", (), 3, ["source"], ("source", ""), ("source", 1)],
    "position_key": ["", (), 3, ["page"], ("page", None)],
    "similarity_threshold": [1.5, -2, True, "0.5", float("nan")],
    "redundancy_threshold": [1.5, -2, False, [0.9], float("inf")],
    "min_chunks": [None, -1, True, 0.5, "1"],
    "neighbors": [None, -1, True, 0.5, "1"],
    "stitch": [None, 1, "yes"],
    "separator": [None, 1, b"\n"],
    "gap": [1, b"...", ["..."]],
    "header": [1, "{title}", "{source.real}", "{source!r}", "{rank:>9}", "{", "{}", "{0}"],
}
ACCEPTED: dict[str, list[Any]] = {
    "k": [None, 1, 5],
    "max_candidates": [None, 130],
    "token_budget": [None, 1000],
    "count_tokens": [words],
    "order": ["source", "rank", "reverse_rank", "edges", "random"],
    "seed": [0, -1, 7],
    "source_ranking": ["best_first", "best_last", "score_sum", "name", len],
    "on_missing_position": ["last", "first", "drop", "error"],
    "source_key": [None, "source", ("title", "source"), by_name],
    "position_key": [None, "chunk_index", ("source", "chunk_index"), by_number],
    "similarity_threshold": [None, -1, 0.5],
    "redundancy_threshold": [None, 1, 0.95],
    "min_chunks": [0, 3],
    "neighbors": [0, 2],
    "stitch": [True, False],
    "separator": ["", " ", "\n---\n"],
    "gap": [None, "", "[...]"],
    "header": [None, "", "{source} {page} {start} {end} {rank} {{}}", titled],
}


def pairs(table: dict[str, list[Any]]) -> list[tuple[str, Any]]:
    return [(name, value) for name, values in table.items() for value in values]


def test_these_tables_are_about_every_option():
    assert set(REFUSED) == set(ACCEPTED) == set(DEFAULTS)


@each_surface
def test_every_option_is_there_with_its_default(make: Callable[..., BaseModel]):
    surface = make()
    options = {name: getattr(surface, name) for name in DEFAULTS}
    assert options == DEFAULTS | EXCEPTIONS[make]
    assert {name: type(value) for name, value in options.items()} == {
        name: type(value) for name, value in (DEFAULTS | EXCEPTIONS[make]).items()
    }


@pytest.mark.parametrize("cls", [OrderPreservingCompressor, OrderPreservingRetriever])
def test_the_classes_state_the_defaults(cls: type[BaseModel]):
    stated = {name: cls.model_fields[name].default for name in DEFAULTS}
    assert stated == DEFAULTS | {"stitch": False}


def test_nothing_else_is_declared_but_what_belongs_to_langchain():
    for_vectors = {"embeddings", "vector_cache", "read_neighbors"}
    assert set(OrderPreservingCompressor.model_fields) - set(DEFAULTS) == {"annotate", *for_vectors}
    assert set(OrderPreservingRetriever.model_fields) - set(DEFAULTS) == {
        *("retriever", "vectorstore", "search_type", "search_kwargs", "annotate", *for_vectors),
        *("name", "tags", "metadata"),
    }


@each_surface
@pytest.mark.parametrize(("name", "value"), pairs(REFUSED))
def test_what_the_assembly_refuses_is_refused_in_the_same_words(make: Callable[..., BaseModel], name: str, value: Any):
    with pytest.raises(OptionError) as expected:
        ContextOptions(**{name: value})
    with pytest.raises(ValidationError) as caught:
        make(**{name: value})
    assert str(expected.value) in str(caught.value)
    assert isinstance(caught.value, ValueError)


@each_surface
@pytest.mark.parametrize(("name", "value"), pairs(REFUSED))
def test_what_is_assigned_is_refused_when_it_is_used(make: Callable[..., BaseModel], name: str, value: Any):
    surface = make()
    setattr(surface, name, value)
    with pytest.raises(OptionError, match=name):
        use(surface)


def use(surface: BaseModel) -> Any:
    if isinstance(surface, OrderPreservingRetriever):
        return surface.invoke(QUESTION)
    assert isinstance(surface, OrderPreservingCompressor)
    return surface.compress_documents(parts(), QUESTION)


@each_surface
@pytest.mark.parametrize(("name", "value"), pairs(ACCEPTED))
def test_what_the_assembly_takes_is_taken(make: Callable[..., BaseModel], name: str, value: Any):
    assert getattr(ContextOptions(**{name: value}), name) is value
    if make is over_store and (name, value) == ("k", None):
        return  # needs max_candidates, since a store has to be asked for some number
    surface = make(**{name: value})
    assert getattr(surface, name) is value
    assert use(surface)


@pytest.mark.parametrize("make", [over_retriever, over_store], ids=["over_retriever", "over_store"])
@pytest.mark.parametrize(("name", "value"), [pair for pair in pairs(ACCEPTED) if pair[0] not in ("k", "stitch")])
def test_every_option_reaches_the_context(make: Callable[..., OrderPreservingRetriever], name: str, value: Any):
    context_options = make(**{name: value}).get_context(QUESTION).options
    exceptions = EXCEPTIONS[make] | {"stitch": True, name: value}
    assert {option: getattr(context_options, option) for option in DEFAULTS} == DEFAULTS | exceptions


def test_two_options_that_contradict_each_other_are_refused_everywhere():
    message = "max_candidates must be at least k, got max_candidates=3 and k=4"
    with pytest.raises(OptionError, match=message):
        ContextOptions(k=4, max_candidates=3)
    for make in EXCEPTIONS:
        with pytest.raises(ValidationError, match=message):
            make(k=4, max_candidates=3)


@each_surface
@pytest.mark.parametrize("unknown", ["order_by", "tokens_budget", "similarity_cutoff", "top_k"])
def test_unknown_names_are_refused(make: Callable[..., BaseModel], unknown: str):
    with pytest.raises(ValidationError, match=unknown):
        make(**{unknown: 1})


@pytest.mark.filterwarnings("ignore::oprag.PositionWarning")
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"k": 2}, [4, 5]),
        ({"max_candidates": 1}, [5]),
        ({"token_budget": 8, "count_tokens": words, "separator": ""}, [4, 5]),
        ({"order": "rank"}, [5, 4, 3]),
        ({"order": "reverse_rank"}, [3, 4, 5]),
        ({"order": "edges"}, [5, 3, 4]),
        ({"position_key": lambda chunk: 5 - chunk.metadata["chunk_index"]}, [5, 4, 3]),
        ({"position_key": all_but_4, "on_missing_position": "last"}, [3, 5, 4]),
        ({"position_key": all_but_4, "on_missing_position": "first"}, [4, 3, 5]),
        ({"position_key": all_but_4, "on_missing_position": "drop"}, [3, 5]),
    ],
    ids=range(10),
)
def test_an_option_does_the_same_on_both_surfaces(options: dict[str, Any], expected: list[int]):
    ranked = [document for document in reversed(parts(6)) if document.metadata["chunk_index"] >= 3]
    numbers = [[document.metadata["chunk_index"] for document in found] for found in both(ranked, options)]
    assert numbers == [expected, expected]


def both(ranked: list[Any], options: dict[str, Any]) -> list[list[Any]]:
    return [
        OrderPreservingRetriever(retriever=giving(ranked), **options).invoke(QUESTION),
        OrderPreservingCompressor(**options).compress_documents(ranked, QUESTION),
    ]
