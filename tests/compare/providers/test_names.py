import json
import sys
from functools import partial

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from oprag import LocalEmbedder, split_tokens
from oprag.compare.providers.identity import counter_of
from oprag.errors import OpragError, TokenizerError
from oprag.index.tokenizers import counter_named, tokenizer_named
from tests.helpers import run_python

TEXT = "The harbour of Aldmere has nine cranes."


@pytest.fixture
def folder(tmp_path):
    """A tokenizer of words, with everything that a count must not be changed by."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "[CLS]": 1, "harbour": 2, "[PAD]": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=100, pad_id=3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@pytest.fixture
def encoding(tmp_path, monkeypatch):
    """An encoding that tiktoken finds as it finds all others, and need not fetch."""
    (tmp_path / "tiktoken_ext").mkdir()
    (tmp_path / "tiktoken_ext" / "small.py").write_text(
        "def small():\n"
        "    ranks = {bytes([number]): number for number in range(256)} | {b'he': 256, b'the': 257}\n"
        "    return {'name': 'small', 'pat_str': r'\\w+|\\W+', 'mergeable_ranks': ranks,\n"
        "            'special_tokens': {'<|end|>': 300}}\n"
        "ENCODING_CONSTRUCTORS = {'small': small}\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{':'.join(sys.path)}")
    return "tiktoken:small"


@pytest.mark.parametrize(("name", "tokens"), [("approximate", 10), ("words", 7), ("characters", 39), ("local", None)])
def test_what_comes_with_the_package(name, tokens):
    expected = LocalEmbedder().count_tokens(TEXT) if tokens is None else tokens
    counter = counter_named(name)
    assert counter(TEXT) == expected
    assert counter.name == name
    assert counter("") == 0
    assert counter(TEXT + "\ud800") >= expected


def test_a_folder_and_a_file_of_hugging_face(folder):
    counter = counter_named(f"huggingface:{folder}")
    # Eight, though it cuts off behind four, fills up to a hundred and puts one before.
    assert counter(TEXT) == 8
    assert counter("harbour \ud800") == 2
    assert counter_named(f"huggingface:{folder / 'tokenizer.json'}").identity == counter.identity
    windows = split_tokens(TEXT, tokenizer_named(f"huggingface:{folder}").tokenizer, chunk_size=3)
    assert [window.text for window in windows] == ["The harbour of ", "Aldmere has nine ", "cranes."]


def test_it_is_known_by_what_it_holds(folder, tmp_path):
    first = counter_named(f"huggingface:{folder}").identity
    copy = tmp_path / "copy"
    copy.mkdir()
    content = json.loads((folder / "tokenizer.json").read_text())
    (copy / "tokenizer.json").write_text(json.dumps(content | {"truncation": None}))
    assert counter_named(f"huggingface:{copy}").identity == first
    other = tmp_path / "other"
    other.mkdir()
    content["model"]["vocab"]["cranes"] = 4
    (other / "tokenizer.json").write_text(json.dumps(content))
    assert counter_named(f"huggingface:{other}").identity != first


def test_an_encoding_of_tiktoken(encoding):
    code = (
        "from oprag import split_tokens; from oprag.index.tokenizers import counter_named, tokenizer_named\n"
        f"counter = counter_named({encoding!r})\n"
        "print(counter('the he <|end|>'), counter.identity)\n"
        f"windows = split_tokens('the theme', tokenizer_named({encoding!r}).tokenizer, chunk_size=3)\n"
        "print([window.text for window in windows])"
    )
    assert run_python(code).splitlines() == ["11 tiktoken(small)", "['the the', 'me']"]


def test_a_function_is_known_by_its_name():
    counter = counter_of(by_tens)
    assert counter(TEXT) == 4
    assert counter.identity == f"named {__name__}:by_tens"
    with pytest.raises(TokenizerError, match="got -1"):
        counter_of(negative)(TEXT)


def by_tens(text):
    return len(text) / 10


def negative(text):
    return -1


@pytest.mark.parametrize(
    "wrong",
    ["", "word", "tiktoken:", "huggingface: ", "nobody:count", ":", "a:b:c", None, 3, str, "x".count, partial(by_tens)],
)
def test_what_is_no_counter(wrong):
    with pytest.raises(OpragError, match=r"must be .*one of approximate"):
        counter_named(wrong) if isinstance(wrong, str) else counter_of(wrong)


def test_encodings_and_files_that_cannot_be_loaded_are_told(tmp_path, monkeypatch):
    with pytest.raises(OpragError, match=r"'nothing_base' cannot be loaded.*cl100k_base"):
        counter_named("tiktoken:nothing_base")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(OpragError, match="cannot be loaded"):
        counter_named(f"huggingface:{tmp_path / 'tokenizer.json'}")
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(OpragError, match="pip install tiktoken"):
        counter_named("tiktoken:another_base")
