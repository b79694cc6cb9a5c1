import dataclasses
import pickle

import numpy as np
import pytest

from oprag import OP_RAG, ContextOptions, build_context
from oprag._internal.masking import describe
from oprag.errors import OpragError, OptionError, QueryError
from oprag.options import check_question
from tests.helpers import hit
from tests.option_values import BAD, GOOD, each_bad_value, each_good_value


@each_bad_value
def test_a_value_that_an_option_cannot_have_is_refused_and_carried(name, value):
    with pytest.raises(OptionError, match=f"^{name} (must be|may contain) ") as caught:
        ContextOptions(**{name: value})
    assert caught.value.value is value
    assert isinstance(caught.value, ValueError)
    assert describe(value) in str(caught.value)


@pytest.mark.parametrize("value", [np.float64(5), np.int64(-5), np.bool_(True), np.array([5])], ids=repr)
@pytest.mark.parametrize("name", ["k", "max_candidates", "token_budget", "min_chunks", "neighbors"])
def test_a_number_of_numpy_that_is_no_count_is_refused(name, value):
    with pytest.raises(OptionError, match=f"^{name} must be an integer"):
        ContextOptions(**{name: value})


@pytest.mark.parametrize("value", [np.float32("nan"), np.float32(1.5), np.int64(2), np.bool_(True)], ids=repr)
@pytest.mark.parametrize("name", ["similarity_threshold", "redundancy_threshold"])
def test_a_number_of_numpy_that_is_no_cosine_is_refused(name, value):
    with pytest.raises(OptionError, match=f"^{name} must be a number between -1 and 1"):
        ContextOptions(**{name: value})


@each_good_value
def test_a_value_that_an_option_can_have_is_kept(name, value):
    kept = getattr(ContextOptions(**{name: value}), name)
    assert kept == value
    assert not isinstance(kept, np.generic)


def test_every_option_is_tested():
    names = {field.name for field in dataclasses.fields(ContextOptions)}
    assert names == set(BAD) == set(GOOD)


@pytest.mark.parametrize(
    "header",
    [
        "{}",
        "{0}",
        "{title}",
        "{source.__class__}",
        "{source[0]}",
        "{source!r}",
        "{rank:>10}",
        "{start:{end}}",
        "{",
        "}",
        "{source",
    ],
)
def test_a_header_template_holds_plain_fields_alone(header):
    with pytest.raises(
        OptionError, match=r"header may contain \{number\}, \{source\}, \{section\}, \{page\}, \{start\}, "
    ) as caught:
        ContextOptions(header=header)
    assert caught.value.value == header


def test_fewer_candidates_than_are_kept_are_refused():
    with pytest.raises(OptionError, match="max_candidates=5 and k=6") as caught:
        ContextOptions(k=6, max_candidates=5)
    assert caught.value.value == 5
    assert ContextOptions(k=6, max_candidates=6).max_candidates == 6


def test_more_chunks_to_keep_than_are_allowed_are_refused():
    with pytest.raises(OptionError, match="min_chunks=7 and k=6") as caught:
        ContextOptions(k=6, min_chunks=7)
    assert caught.value.value == 7
    assert ContextOptions(k=6, min_chunks=6).min_chunks == 6


def test_the_setting_of_the_paper():
    assert ContextOptions(k=128, separator="") == OP_RAG
    assert hash(OP_RAG) == hash(ContextOptions(k=128, separator=""))
    assert pickle.loads(pickle.dumps(OP_RAG)) == OP_RAG


def test_every_option_says_what_it_does():
    descriptions = {field.name: field.metadata["help"] for field in dataclasses.fields(ContextOptions)}
    assert all(len(text) > 20 and text.endswith(".") for text in descriptions.values()), descriptions


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("token_budgets", "did you mean 'token_budget'"),
        ("zzz", "expected one of k, "),
        ("top_k", "unknown option 'top_k'; use k="),
        ("similarity_cutoff", "use similarity_threshold=, a cosine similarity"),
    ],
)
def test_an_unknown_option_is_refused_with_a_hint(name, hint):
    with pytest.raises(OptionError, match=hint) as caught:
        build_context([hit("text", 0)], None, **{name: 5})  # type: ignore[arg-type]
    assert caught.value.value == name


@pytest.mark.parametrize("context_options", [{"k": 3}, 3, "source", ContextOptions])
def test_something_else_than_an_assembly_is_refused(context_options):
    with pytest.raises(OptionError, match=r"expected oprag\.ContextOptions") as caught:
        build_context([hit("text", 0)], context_options)
    assert caught.value.value is context_options


@pytest.mark.parametrize("question", ["", " ", "\n\t", "\u00a0\u3000"])
def test_a_blank_question_is_refused(question):
    with pytest.raises(QueryError, match="the question is empty") as caught:
        check_question(question)
    assert caught.value.value == question
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("question", [None, 5, b"what", ["what"], {"query": "what"}])
def test_something_else_than_a_text_is_refused(question):
    with pytest.raises(QueryError, match=f"must be a string, got {type(question).__name__}") as caught:
        check_question(question)
    assert caught.value.value is question
    assert isinstance(caught.value, OpragError)
