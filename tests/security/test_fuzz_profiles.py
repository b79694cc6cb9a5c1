"""Mutated profiles: each is read, or refused with an error of ours, and nothing is imported or opened because of it."""

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from oprag.errors import OpragError
from oprag.index.tokenizers import counter_named
from oprag.methods.profile import read_profile
from tests.security.fuzzing import VALUES, cases, check_message, mutated

PROFILE = '''\
# Every kind of value that a profile can have.
format = 1
written_by = "oprag 0.1.0"

[about]
found_by = "oprag compare contracts.toml"
questions = 120
when = 2026-11-21T10:00:00Z
shares = [0.25, 1e-3]

[context]
k = 32
max_candidates = 64
token_budget = "none"
count_tokens = "words"
order = "source"
source_key = ["file", "name"]
similarity_threshold = 0.25
separator = "\\n\\n"
header = "[{source}]"
stitch = true

[method]
method = "refine"
passage_tokens = 512
answer_threshold = -0.5

[method.prompts]
answer = """
{context}

{question}"""
'''


@contextmanager
def imports() -> Iterator[set[str]]:
    """The names of modules that are asked for, and are not there yet."""

    class Finder:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            asked.add(name.partition(".")[0])

    asked: set[str] = set()
    sys.meta_path.insert(0, Finder)
    try:
        yield asked
    finally:
        sys.meta_path.remove(Finder)


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    # What well-behaved profiles may import, so that anything else is seen.
    for name in ("words", "tiktoken:none_base"):
        with suppress(OpragError):
            counter_named(name)


def test_mutated_profiles_are_read_or_refused(tmp_path, monkeypatch):
    (tmp_path / "evil.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "oprag.toml"
    read = 0
    for seed in range(cases()):
        chance = random.Random(seed)
        # Often another counter, which could name code.
        text = PROFILE.replace('"words"', chance.choice([*VALUES, *['"words"'] * 2 * len(VALUES)]))
        path.write_bytes(mutated(text, chance, ["count_tokens", "k"], ["[assembly.context]", "[method]"]))
        with imports() as asked:
            try:
                read_profile(path)
                read += 1
            except OpragError as error:
                check_message(error, seed)
        assert asked <= {*sys.stdlib_module_names, "oprag", "tokenizers"}, seed
    # Some are still profiles, so that more than the reader of TOML is tried.
    assert 0 < read < cases()
