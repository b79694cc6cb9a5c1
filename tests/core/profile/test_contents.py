import pickle
from dataclasses import FrozenInstanceError, fields
from datetime import UTC, datetime, time, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from oprag import OP_RAG, ContextOptions, OptionError, PromptError, approximate_tokens
from oprag.compare.providers.names import counter_of
from oprag.methods import MethodOptions, Prompts, TextTemplate
from oprag.profile import Profile
from tests.helpers import word_offsets
from tests.option_values import BAD, each_good_value

CALLABLE = [one.name for one in fields(ContextOptions) if one.metadata["function"] and one.name != "count_tokens"]


@each_good_value
def test_every_value_of_the_assembly_is_held_but_for_functions(name, value):
    if callable(value) and value is not approximate_tokens:
        with pytest.raises(OptionError, match=f"{name}.* cannot contain.*pass {name}= together with the profile"):
            Profile(context={name: value})
        return
    profile = Profile(context={name: value})
    assert profile.as_context_options() == ContextOptions(**{name: value})
    assert set(profile.context) == {name}


@pytest.mark.parametrize("name", [name for name in BAD if name != "count_tokens"])  # counters have names here
def test_the_same_values_are_refused_in_the_same_words(name):
    value = BAD[name][0]
    with pytest.raises(OptionError) as expected:
        ContextOptions(**{name: value})
    with pytest.raises(OptionError) as caught:
        Profile(context={name: value})
    assert str(caught.value) == str(expected.value)


def test_options_of_methods_are_checked_as_there():
    assert Profile(method={"method": "refine", "passage_tokens": 64}).as_method_options() == MethodOptions(
        method="refine", passage_tokens=64
    )
    with pytest.raises(OptionError, match="passage_tokens must be an integer >= 1, got 0"):
        Profile(method={"passage_tokens": 0})
    with pytest.raises(PromptError, match=r"the answer prompt must have the field \{context\}"):
        Profile(method={"prompts": {"answer": "{question}"}})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"context": {"ordr": "rank"}}, "unknown option 'ordr'; did you mean 'order'"),
        ({"context": {"cite": True}}, "cite is not an option of context; it belongs in method"),
        ({"method": {"k": 3}}, "k is not an option of method; it belongs in context"),
        ({"method": {"llm": "x"}}, "unknown option 'llm'; expected one of method, "),
        ({"context": {"max_candidates": 2, "k": 3}}, "max_candidates must be at least k"),
        ({"context": 3}, "context must be a mapping, got 3"),
        ({"about": "me"}, "about must be a mapping, got 'me'"),
        ({"about": {"a": None}}, "about.a must be a string, a number, a date, a time or a list of these, got NoneType"),
        ({"about": {"a": {"b": 1}}}, "about.a must be .*, got dict"),
        ({"about": {3: 1}}, "the names in about must be strings, got 3"),
        (
            {"about": {"a": time(1, 2, tzinfo=UTC)}},
            r"about\.a is not supported by TOML: a time must have no time zone, .*; got 01:02",
        ),
        (
            {"about": {"a": [datetime(2026, 1, 2, tzinfo=timezone(timedelta(seconds=3_661)))]}},
            "UTC offset in whole minutes",
        ),
        ({"context": {"gap": "none"}}, "gap cannot be the string 'none', which means None"),
    ],
)
def test_what_a_profile_cannot_say_is_refused(given, message):
    with pytest.raises(OptionError, match=message):
        Profile(**given)


def test_only_options_that_can_be_nothing_have_no_such_text():
    assert Profile(context={"separator": "none"}).as_context_options().separator == "none"


@pytest.mark.parametrize("name", CALLABLE)
def test_a_function_is_refused_with_the_way_out(name):
    options: dict[str, Any] = {name: len}
    with pytest.raises(
        OptionError, match=f"^{name} is a function, .* pass {name}= together with the profile"
    ) as caught:
        Profile.of(ContextOptions(**options))
    assert caught.value.value is len


def test_prompts_are_texts():
    texts = {"map": "{context} {question}", "instruction": "Be short."}
    whole = Prompts(map=TextTemplate("{context} {question}"), instruction="Be short.")
    for given in (texts, whole):
        profile = Profile(method={"prompts": given})
        assert profile.method == {"prompts": texts}
        assert profile.as_method_options().prompts == whole
    assert Profile(method={"prompts": Prompts()}).method == {}
    with_system = TextTemplate("{context} {question}", "You read.")
    with pytest.raises(
        OptionError, match=r"the map prompt is not plain text, .* pass prompts= together with the profile"
    ):
        Profile(method={"prompts": {"map": with_system}})


def test_a_profile_of_a_setting_says_what_is_not_as_by_default_and_the_heart_of_it():
    profile = Profile.of(
        ContextOptions(token_budget=900, redundancy_threshold=0.9), MethodOptions(variants=2), {"found_by": "a sweep"}
    )
    assert profile.context == {"k": None, "token_budget": 900, "order": "source", "redundancy_threshold": 0.9}
    assert profile.method == {"method": "stuff", "variants": 2}
    assert profile.about == {"found_by": "a sweep"}
    assert Profile.of(OP_RAG).as_context_options() == OP_RAG
    assert Profile.of(OP_RAG).method == {}


def test_options_win_over_the_profile():
    profile = Profile(context={"k": 8, "order": "rank"}, method={"method": "refine", "cite": True})
    assert profile.as_context_options(k=3) == ContextOptions(k=3, order="rank")
    assert profile.as_method_options(method="stuff") == MethodOptions(cite=True)
    with pytest.raises(OptionError, match="unknown option 'ordre'"):
        profile.as_context_options(ordre="rank")
    with pytest.raises(OptionError, match="unknown option 'methd'"):
        profile.as_method_options(methd="rank")


def test_it_can_be_taken_for_retrieval_alone():
    profile = Profile(context={"k": 8}, method={"method": "refine"}, about={"a": "b"})
    assert profile.without_method() == Profile(context={"k": 8}, about={"a": "b"})


def test_it_is_frozen_and_nothing_given_is_held():
    given = {"k": 8}
    profile = Profile(context=given)
    given["k"] = 9
    assert profile.context == {"k": 8}
    with pytest.raises(FrozenInstanceError):
        profile.context = {}  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(profile)) == profile


def test_numbers_of_numpy_become_those_of_python():
    profile = Profile(
        context={"similarity_threshold": np.float32(0.5)},
        about={"score": np.float64(0.25), "questions": np.int64(50), "all": [np.float32(1), True]},
    )
    assert type(profile.context["similarity_threshold"]) is float
    assert [type(value) for value in profile.about.values()] == [float, int, list]
    assert [type(value) for value in profile.about["all"]] == [float, bool]


@pytest.mark.parametrize(
    "name", ["approximate", "words", "characters", "local", "tiktoken:o200k_base", "huggingface:a/b"]
)
def test_counters_go_by_their_names_and_are_loaded_when_they_are_used(name):
    # None of the last two could be loaded here.
    assert Profile(context={"count_tokens": name}).context == {"count_tokens": name}


def test_a_counter_is_what_experiments_mean_by_its_name():
    def loaded(given):
        return Profile(context={"count_tokens": given}).as_context_options().count_tokens

    assert loaded("words") == loaded(counter_of("words")) == counter_of("words")
    for given in ("approximate", approximate_tokens, counter_of("approximate")):
        assert loaded(given) is approximate_tokens


def test_a_counter_that_is_given_otherwise_is_not_loaded():
    profile = Profile(context={"count_tokens": "huggingface:/no/such/folder/tokenizer.json", "k": 3})
    assert profile.as_context_options(count_tokens=len) == ContextOptions(k=3, count_tokens=len)
    with pytest.raises(OptionError, match=r"count_tokens: the tokenizer .* is not a local folder or file"):
        profile.as_context_options()


def test_a_tokenizer_is_loaded_from_its_folder_or_its_file(tmp_path):
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        options = Profile(context={"count_tokens": f"huggingface:{path}"}).as_context_options()
        assert options.count_tokens("one two three") == 3


@pytest.mark.parametrize("value", [len, counter_of(word_offsets), "os:system", "tests.helpers:word_offsets"])
def test_no_profile_says_which_code_runs(value):
    with pytest.raises(OptionError, match=r"cannot contain functions.* pass count_tokens= together with the profile"):
        Profile(context={"count_tokens": value})


@pytest.mark.parametrize("value", ["gpt-4", "", "Words", "tiktoken", "tiktoken:", "huggingface: ", "words:3", 5, None])
def test_no_other_counter_is_taken(value):
    with pytest.raises(OptionError, match=r"count_tokens must be one of approximate, words, .* got") as caught:
        Profile(context={"count_tokens": value})
    assert "cannot contain functions" not in str(caught.value)
