"""Profiles: what they hold, and the files that they are written to and read from."""

import importlib
import re
import sys
from dataclasses import fields
from datetime import UTC, date, datetime, time, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from oprag import ContextOptions, __version__, approximate_tokens
from oprag.compare.providers.identity import counter_of
from oprag.errors import InputFileError, MissingExtraError, OptionError
from oprag.methods import MethodOptions, Prompts, TextTemplate
from oprag.methods.profile import Profile, read_profile, write_profile
from tests.helpers import word_offsets
from tests.option_values import BAD, GOOD, GOOD_FOR_METHODS, each_good_value

TEXTS = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from('\n\r\t\\"\x00\x1f\x7f\x85\u2028abn')))
COSINES = st.floats(-1, 1)
SOME_TEXT = TEXTS.filter(lambda text: text != "none")
NAME = SOME_TEXT.filter(bool)
KEYS = st.one_of(st.none(), NAME, st.lists(TEXTS.filter(bool), min_size=1, max_size=3).map(tuple))
LITERAL = SOME_TEXT.map(lambda text: text.replace("{", "{{").replace("}", "}}"))

# Those of TOML.
INTEGERS = st.integers(-(2**63), 2**63 - 1)
ASSEMBLY: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.sampled_from([value for value in values if not callable(value)]) for name, values in GOOD.items()},
    "k": st.none() | st.integers(500, 10**6),
    "max_candidates": st.none() | st.integers(10**6, 10**9),
    "count_tokens": st.sampled_from(["approximate", "words", "characters"]),
    "seed": INTEGERS,
    "source_key": KEYS,
    "position_key": KEYS,
    "similarity_threshold": st.none() | COSINES,
    "separator": TEXTS,
    "gap": st.none() | SOME_TEXT,
    "header": st.none() | LITERAL | st.just("# {source}\n{rank}"),
}
PROMPT = TEXTS.map(lambda text: "{context} {question} " + text.replace("{", "{{").replace("}", "}}"))
METHOD: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.sampled_from(values) for name, values in GOOD_FOR_METHODS.items()},
    "prompts": st.fixed_dictionaries({"map": PROMPT}, optional={"answer": PROMPT, "instruction": TEXTS}),
    "empty_answer": TEXTS,
}
ABOUT = st.dictionaries(
    TEXTS, TEXTS | INTEGERS | st.floats(allow_nan=False) | st.dates() | st.lists(TEXTS, max_size=3), max_size=3
)


@each_good_value
def test_every_value_of_the_assembly_is_held_but_for_functions(name, value):
    if callable(value) and value is not approximate_tokens:
        with pytest.raises(ValidationError, match=f"{name} is a function; a profile cannot contain code"):
            Profile(context={name: value})
        return
    profile = Profile(context={name: value})
    assert ContextOptions(**profile.context) == ContextOptions(**{name: value})
    assert set(profile.context) == {name}


@pytest.mark.parametrize("name", [name for name in BAD if name != "count_tokens"])  # counters have names here
def test_the_same_values_are_refused_in_the_same_words(name):
    value = next(value for value in BAD[name] if not isinstance(value, list))  # lists of files become tuples
    with pytest.raises(OptionError) as expected:
        ContextOptions(**{name: value})
    with pytest.raises(ValidationError, match=re.escape(str(expected.value))):
        Profile(context={name: value})


def test_prompts_are_texts():
    texts = {"map": "{context} {question}", "instruction": "Be short."}
    whole = Prompts(map=TextTemplate("{context} {question}"), instruction="Be short.")
    for prompts in (texts, whole):
        profile = Profile(method={"prompts": prompts})
        assert profile.method == {"prompts": texts}
        assert MethodOptions(**profile.method).prompts == whole
    assert Profile(method={"prompts": Prompts()}).method == {}
    with_system = TextTemplate("{context} {question}", "You read.")
    with pytest.raises(ValidationError, match=r"the map prompt is not plain text; .* pass it together"):
        Profile(method={"prompts": {"map": with_system}})


def test_a_tokenizer_is_loaded_from_its_folder_or_its_file(tmp_path):
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for path in (tmp_path, tmp_path / "tokenizer.json"):
        profile = Profile(context={"count_tokens": f"huggingface:{path}"})
        assert profile.context["count_tokens"]("one two three") == 3
        write_profile(profile, tmp_path / "oprag.toml")
        assert read_profile(tmp_path / "oprag.toml") == profile


@pytest.mark.parametrize(
    "value",
    [
        *(len, counter_of(word_offsets), "os:system", "tests.helpers:word_offsets"),
        *("gpt-4", "", "Words", "tiktoken", "tiktoken:", "huggingface: ", "words:3", 5, None),
        "huggingface:/no/such/folder/tokenizer.json",
    ],
)
def test_no_other_counter_is_taken_and_no_code(value):
    with pytest.raises(ValidationError, match=r"count_tokens( is a function|: a token counter|: the tokenizer)"):
        Profile(context={"count_tokens": value})


def test_every_option_is_among_the_generated_ones():
    assert set(ASSEMBLY) == {one.name for one in fields(ContextOptions)}
    assert set(METHOD) == {one.name for one in fields(MethodOptions)}


@given(
    profile=st.builds(
        Profile,
        context=st.fixed_dictionaries({}, optional=ASSEMBLY),
        method=st.fixed_dictionaries({}, optional=METHOD),
        about=ABOUT,
    )
)
def test_what_is_written_is_what_is_read(tmp_path_factory, profile):
    path = tmp_path_factory.getbasetemp() / "oprag.toml"
    write_profile(profile, path)
    written = path.read_bytes()
    read = read_profile(path)
    assert read == profile
    assert {name: type(value) for name, value in read.context.items()} == {
        name: type(value) for name, value in profile.context.items()
    }
    write_profile(read, path)
    assert path.read_bytes() == written


def test_a_profile_is_readable_by_people(tmp_path):
    path = tmp_path / "oprag.toml"
    profile = Profile(
        # The sequence is that of the declarations.
        context={"header": "# {source}", "order": "source", "token_budget": None, "k": 32, "count_tokens": "words"},
        method={"prompts": {"map": "One passage:\n{context}\n\nQ: {question}"}, "method": "map_reduce"},
        about={"found by": "oprag sweep", "on": date(2026, 3, 1)},
    )
    write_profile(profile, path)
    assert (
        path.read_text()
        == f'''\
# An oprag profile: options for order-preserving RAG, loaded by X.from_profile("oprag.toml").
# Options that are not listed keep their defaults. "none" means None.
format = 1
written_by = "oprag {__version__}"

[about]
"found by" = "oprag sweep"
on = 2026-03-01

[context]
k = 32
token_budget = "none"
count_tokens = "words"
order = "source"
header = "# {{source}}"

[method]
method = "map_reduce"

[method.prompts]
map = """
One passage:
{{context}}

Q: {{question}}"""
'''
    )


@pytest.mark.parametrize(
    "value",
    [
        *("a \ud800", None, {"a": None}, object(), time(1, 2, tzinfo=UTC), np.int64(3)),
        datetime(2026, 1, 2, tzinfo=timezone(timedelta(seconds=3_661))),
    ],
)
def test_what_toml_does_not_have_is_refused_and_the_file_stays(value, tmp_path):
    path = tmp_path / "oprag.toml"
    write_profile(Profile(context={"k": 3}), path)
    with pytest.raises(OptionError, match=r"cannot write the profile .*oprag\.toml: "):
        write_profile(Profile(about={"key": value}), path)
    assert read_profile(path).context == {"k": 3}
    assert [one.name for one in tmp_path.iterdir()] == ["oprag.toml"]


def test_what_cannot_be_written_is_told(tmp_path):
    for path in (tmp_path / "no" / "oprag.toml", tmp_path):
        with pytest.raises(OptionError, match=f"cannot write {re.escape(str(path))}: "):
            write_profile(Profile(), path)
    (tmp_path / "mine.toml").write_text("format = 1\n")
    with pytest.raises(OptionError, match="already exists and is not a profile"):
        write_profile(Profile(), tmp_path / "mine.toml")


def read(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_profile(path)


def test_a_profile_written_by_hand_is_read(tmp_path):
    profile = read(
        tmp_path,
        """
format = 1
written_by = "oprag 0.0.1"
[context]
k = "none"
similarity_threshold = 1
gap = "none"
separator = "none"
position_key = ["page", "line"]
[method]
collapse_tokens = "none"
[method.prompts]
instruction = "Be short."
""",
    )
    assert profile.context == {
        "k": None,
        "position_key": ("page", "line"),
        "similarity_threshold": 1,
        "separator": "none",
        "gap": None,
    }
    assert profile.method == {"prompts": {"instruction": "Be short."}, "collapse_tokens": None}
    assert read(tmp_path, "format = 1\n") == Profile()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("format = 2", "format: Input should be 1"),
        ("k = 3", "unknown table or key 'k'; expected one of format, written_by, about, context, method"),
        ("[contxt]\nk = 3", "unknown table or key 'contxt'; did you mean 'context'?"),
        ("context = 3", "context: Input should be a valid dictionary"),
        ("[context]\nordr = 'rank'", "context: unknown option 'ordr'; did you mean 'order'"),
        ("[method]\nk = 3", "method: unknown option 'k'"),
        ("[context]\nk = 3.0", "k must be an integer >= 1 or None, got 3.0"),
        ("[context]\nk = 3\nmax_candidates = 2", "max_candidates must be at least k, got max_candidates=2 and k=3"),
        ("[context]\nmin_chunks = 'none'", "min_chunks must be an integer >= 0, got 'none'"),
        ("[context]\nsource_key = []", "source_key must be a metadata key, a tuple of keys or a function"),
        ("[context]\ncount_tokens = 'os:system'", "count_tokens: a token counter must be one of"),
        ("[method]\nmethod = ''", "method: method must be the name of a method, got ''"),
        ("[method]\nprompts = 3", "prompts must be a mapping of names to prompts, got int"),
        ("[method.prompts]\nanswer = '{question}'", r"the answer prompt must have the field \{context\}"),
    ],
)
def test_what_a_file_cannot_say_is_refused_with_its_name_and_key(tmp_path, text, message):
    with pytest.raises(OptionError, match=f"^mine.toml: .*{message}"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"format = ", "^mine.toml: invalid TOML: Invalid value"),
        (b"", "contains no text"),
        (b"format = 1 # \xe9", "is not UTF-8 text"),
        (b"PK\x03\x04\x00\x00", "is not a text file"),
        (b"a = " + 5_000 * b"[", "are nested too deeply"),
    ],
)
def test_a_file_that_is_no_toml_is_told_as_that(tmp_path, content, message):
    with pytest.raises(InputFileError, match=message) as caught:
        read(tmp_path, content)
    assert "mine.toml" in str(caught.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path):
    with pytest.raises(InputFileError, match=r"cannot read the profile .*none.toml: No such file or directory"):
        read_profile(tmp_path / "none.toml")
    with pytest.raises(InputFileError, match=r"cannot read the profile .*: is a folder"):
        read_profile(tmp_path)


@pytest.mark.parametrize("package", ["pydantic", "tomli_w"])
def test_a_missing_package_is_one_sentence(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "oprag.methods.profile")
    with pytest.raises(MissingExtraError, match=r"^oprag\.methods\.profile requires .*: pip install pydantic tomli-w$"):
        importlib.import_module("oprag.methods.profile")
