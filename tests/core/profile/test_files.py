import re
import tomllib
from dataclasses import fields
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oprag import ContextOptions, InputFileError, OptionError, PromptError, __version__
from oprag.methods import MethodOptions
from oprag.profile import Profile, read_profile, write_profile
from tests.core.profile.test_toml_text import TEXTS

COUNTS = st.integers(1, 10**9)
COSINES = st.floats(-1, 1)
SOME_TEXT = TEXTS.filter(lambda text: text != "none")
NAME = SOME_TEXT.filter(bool)
KEYS = st.one_of(st.none(), NAME, st.lists(TEXTS.filter(bool), min_size=1, max_size=3).map(tuple))
LITERAL = SOME_TEXT.map(lambda text: text.replace("{", "{{").replace("}", "}}"))

# Those of TOML.
INTEGERS = st.integers(-(2**63), 2**63 - 1)
ASSEMBLY: dict[str, st.SearchStrategy[Any]] = {
    "k": st.none() | st.integers(500, 10**6),
    "max_candidates": st.none() | st.integers(10**6, 10**9),
    "continuity": st.just(0.0),
    "token_budget": st.none() | COUNTS,
    "count_tokens": st.sampled_from(["approximate", "words", "characters"]),
    "order": st.sampled_from(["source", "rank", "reverse_rank", "edges", "random"]),
    "seed": INTEGERS,
    "source_ranking": st.sampled_from(["best_first", "best_last", "score_sum", "name"]),
    "on_missing_position": st.sampled_from(["last", "first", "drop", "error"]),
    "on_uncertain": st.sampled_from(["warn", "ignore", "error"]),
    "source_key": KEYS,
    "position_key": KEYS,
    "similarity_threshold": st.none() | COSINES,
    "redundancy_threshold": st.none() | COSINES,
    "min_chunks": st.integers(0, 500),
    "neighbors": st.integers(0, 500),
    "whole_source_tokens": st.none() | COUNTS,
    "stitch": st.booleans(),
    "separator": TEXTS,
    "gap": st.none() | SOME_TEXT,
    "header": st.none() | LITERAL | st.just("# {source}\n{rank}"),
}
PROMPT = TEXTS.map(lambda text: "{context} {question} " + text.replace("{", "{{").replace("}", "}}"))
METHOD: dict[str, st.SearchStrategy[Any]] = {
    "method": NAME,
    "inner_method": NAME,
    "prompts": st.fixed_dictionaries({"map": PROMPT}, optional={"answer": PROMPT, "instruction": TEXTS}),
    "passage_tokens": COUNTS,
    "collapse_tokens": st.none() | COUNTS,
    "rank_by": st.sampled_from(["confidence", "cosine"]),
    "variants": COUNTS,
    "answer_threshold": COSINES,
    "source_token_budget": st.none() | COUNTS,
    "overflow": st.sampled_from(["error", "truncate_middle", "truncate_end"]),
    "cite": st.booleans(),
    "condense": st.booleans(),
    "empty_answer": TEXTS,
    "on_error": st.sampled_from(["raise", "skip"]),
    "max_concurrency": COUNTS,
}
ABOUT = st.dictionaries(
    TEXTS, TEXTS | INTEGERS | st.floats(allow_nan=False) | st.dates() | st.lists(TEXTS, max_size=3), max_size=3
)
PROFILES = st.builds(
    Profile,
    context=st.fixed_dictionaries({}, optional=ASSEMBLY),
    method=st.fixed_dictionaries({}, optional=METHOD),
    about=ABOUT,
)


def test_every_option_is_among_the_generated_ones():
    assert set(ASSEMBLY) == {one.name for one in fields(ContextOptions)}
    assert set(METHOD) == {one.name for one in fields(MethodOptions)}


@given(profile=PROFILES)
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
        context={"header": "# {source}\n", "order": "source", "token_budget": None, "k": 32},
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
# Where this profile came from; has no effect.
"found by" = "oprag sweep"
on = 2026-03-01

[context]
# Maximum number of chunks to keep; the best-ranked ones are kept.
k = 32
# Maximum number of tokens in the rendered context.
token_budget = "none"
# Order of the kept chunks: source (OP-RAG), rank (vanilla), reverse_rank, edges (best at both ends) or random.
order = "source"
# Line above each passage; may contain {{number}}, {{source}}, {{section}}, {{page}}, {{start}}, {{end}} and {{rank}}.
header = "# {{source}}\\n"

[method]
# Name of the method that answers the question.
method = "map_reduce"

[method.prompts]
# Your own prompts, by step name; other steps use the default prompts.
map = """
One passage:
{{context}}

Q: {{question}}"""
'''
    )


def test_the_default_file_is_oprag_toml(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_profile(Profile(context={"k": 3}))
    assert [path.name for path in tmp_path.iterdir()] == ["oprag.toml"]
    assert read_profile() == read_profile(Path("oprag.toml")) == Profile(context={"k": 3})


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "oprag.toml"
    write_profile(Profile(context={"k": 3}), path)
    with pytest.raises(OptionError, match="lone surrogate"):
        write_profile(Profile(context={"k": 4, "gap": "\ud800"}), path)
    assert read_profile(path).context == {"k": 3}
    assert [one.name for one in tmp_path.iterdir()] == ["oprag.toml"]


def test_what_cannot_be_written_is_told(tmp_path):
    for path in (tmp_path / "no" / "oprag.toml", tmp_path):
        with pytest.raises(OptionError, match=f"cannot write {re.escape(str(path))}: "):
            write_profile(Profile(), path)
    with pytest.raises(OptionError, match=r"expected an oprag\.profile\.Profile, got dict"):
        write_profile({"k": 3}, tmp_path / "oprag.toml")  # type: ignore[arg-type]


def read(tmp_path: Path, text: str | bytes) -> Profile:
    path = tmp_path / "mine.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_profile(path)


HEAD = "format = 1\n"


def test_a_profile_written_by_hand_is_read(tmp_path):
    profile = read(
        tmp_path,
        """
format = 1
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
    assert read(tmp_path, HEAD) == Profile()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[context]\nk = 3", "the key format is missing, so this may not be a profile; .* format = 1$"),
        ("format = 2", f"oprag {__version__} reads profiles with format = 1, got 2; upgrade oprag"),
        ('format = 3\nwritten_by = "oprag 9.0"\nnew = 1', "got 3; oprag 9.0 wrote it; upgrade oprag"),
        ("format = 0", "reads profiles with format = 1, got 0; write the file again"),
        ('format = "1"', "got '1'; write the file again"),
        ("format = true", "got True; write the file again"),
        (HEAD + "k = 3", r"k belongs in the table \[context\]"),
        (HEAD + "cite = true", r"cite belongs in the table \[method\]"),
        (HEAD + "[contxt]\nk = 3", "unknown key 'contxt'; did you mean 'context'"),
        (HEAD + "[grid]", "unknown key 'grid'; expected one of format, written_by, context, method, about"),
        (HEAD + "context = 3", r"context must be a table, \[context\], got 3"),
        (HEAD + "method = 'stuff'", r"method must be a table, \[method\], got 'stuff'"),
        (HEAD + "about = 'me'", r"about must be a table, \[about\], got 'me'"),
        (HEAD + "written_by = 3", "written_by must be a string, got 3"),
        (HEAD + "[context]\nordr = 'rank'", r"in \[context\]: unknown key 'ordr'; did you mean 'order'"),
        (
            HEAD + "[context]\nmethod = 'stuff'",
            r"in \[context\]: method is not an option of context; it belongs in meth",
        ),
        (HEAD + "[method]\nk = 3", r"in \[method\]: k is not an option of method; it belongs in context"),
        (HEAD + "[context]\nk = 3.0", r'in \[context\]: k must be an integer >= 1 or "none", got 3.0'),
        (HEAD + "[context]\nk = 'None'", """k must be an integer >= 1 or "none", got 'None'"""),
        (
            HEAD + "[context]\nk = 3\nmax_candidates = 2",
            "max_candidates must be at least k, got max_candidates=2 and k=3",
        ),
        (HEAD + "[context]\nmin_chunks = 'none'", "min_chunks must be an integer >= 0, got 'none'"),
        (HEAD + "[context]\norder = 'sourec'", "order must be one of source, rank, .*, got 'sourec'"),
        (
            HEAD + "[context]\nsimilarity_threshold = nan",
            'must be a number between -1 and 1 or "none", got nan',
        ),
        (HEAD + "[context]\nsource_key = []", "source_key must be a metadata key, a tuple of keys or a function"),
        (HEAD + "[context]\nheader = '{source.x}'", "header may contain "),
        (HEAD + "[context]\ncount_tokens = 'os:system'", "count_tokens must be one of .* cannot contain functions"),
        (HEAD + "[method]\nmethod = ''", r"in \[method\]: method must be the name of a method, got ''"),
        (HEAD + "[method]\nprompts = 3", "prompts must be a mapping of names to prompts, got int"),
        (HEAD + "[method.prompts]\nanswr = 'x'", "unknown prompt 'answr'; expected one of answer, refine"),
        (HEAD + "[method.prompts]\nmap = 3", "the map prompt"),
        (
            HEAD + "[about]\nwho = {a = 1}",
            r"in \[about\]: about.who must be a string, a number, a date, a time or a list",
        ),
    ],
)
def test_what_a_file_cannot_say_is_refused_with_its_name(tmp_path, text, message):
    with pytest.raises((OptionError, PromptError), match=f"^mine.toml: .*{message}"):
        read(tmp_path, text)


def test_a_prompt_is_refused_as_everywhere(tmp_path):
    with pytest.raises(
        PromptError, match=r"^mine.toml: in \[method\]: the answer prompt must have the field \{context\}"
    ):
        read(tmp_path, HEAD + "[method.prompts]\nanswer = '{question}'")


@pytest.mark.parametrize("table", ["", "[context]\n", "[method]\n"])
def test_a_key_of_another_version_is_told_as_that(tmp_path, table):
    with pytest.raises(
        OptionError, match=r"unknown key 'lenght'.*oprag 0.0.1 wrote it, and this is .*see the changelog"
    ):
        read(tmp_path, f'format = 1\nwritten_by = "oprag 0.0.1"\n{table}lenght = 3')
    with pytest.raises(OptionError, match="unknown key 'lenght'") as caught:
        read(tmp_path, f'format = 1\nwritten_by = "oprag {__version__}"\n{table}lenght = 3')
    assert "wrote it" not in str(caught.value)


def test_a_profile_of_another_version_is_read_where_it_says_nothing_else(tmp_path):
    assert read(tmp_path, 'format = 1\nwritten_by = "oprag 0.0.1"\n[context]\nk = 3').context == {"k": 3}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"format = ", "^mine.toml: invalid TOML: Invalid value"),
        (b"format = 1\nformat = 1", "invalid TOML: Cannot overwrite a value"),
        (b"k: 3", "invalid TOML"),
        (b"", "contains no text"),
        (b"format = 1 # \xe9", "is not UTF-8 text"),
        (b"PK\x03\x04\x00\x00", "is not a text file"),
        (b"format = 1" + 5_000 * b"0", "invalid TOML: "),
        (b"format = 0x1" + 5_000 * b"f", "the integer format has more than 64 bits"),
        (b"[about]\na = [{b = 18446744073709551616}]", r"the integer about\.a\[0\]\.b has more than 64 bits"),
        (b"a = " + 5_000 * b"[", "are nested too deeply"),
        (b"a = " + 5_000 * b"{a = ", "are nested too deeply"),
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
    with pytest.raises(InputFileError, match="null byte"):
        read_profile("a\0b")
    for wrong in (None, 3, b"oprag.toml", {"k": 3}):
        with pytest.raises(OptionError, match="expected the path of a profile, got "):
            read_profile(wrong)  # type: ignore[arg-type]


def test_keys_are_what_python_reads(tmp_path):
    path = tmp_path / "oprag.toml"
    write_profile(Profile(context={"k": 3}, method={"cite": True}, about={"a": 1}), path)
    assert tomllib.loads(path.read_text()) == {
        "format": 1,
        "written_by": f"oprag {__version__}",
        "about": {"a": 1},
        "context": {"k": 3},
        "method": {"cite": True},
    }
