import functools
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from oprag import TokenWindow, split_recursive, split_tokens
from oprag.errors import ChunkError, OptionError, TokenizerError
from tests.helpers import prose, word_offsets

CORPUS = [prose(200, seed=seed) + " naïve Übung 日本語 don't été" for seed in range(3)]


def trained(tokenizer: Tokenizer, trainer: Any) -> Tokenizer:
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def byte_level() -> Tokenizer:
    """As GPT-2 and Llama 3: any byte is a token, so one character can be several."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    return trained(tokenizer, trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False))


def word_pieces(normalizer: Any) -> Tokenizer:
    """As BERT: the normalizer changes the text, and unknown words are one token."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[UNK]", "[CLS]", "[SEP]", "[PAD]"]
    trained(tokenizer, trainers.WordPieceTrainer(vocab_size=300, special_tokens=special, show_progress=False))
    ids = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ids)
    return tokenizer


def unigram() -> Tokenizer:
    """As T5 and XLM-R: white space becomes part of the tokens."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=300, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False)
    return trained(tokenizer, trainer)


def byte_fallback() -> Tokenizer:
    """As Llama 2: a normalizer puts a mark before the text, and unknown characters are bytes."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    return trained(tokenizer, trainers.BpeTrainer(vocab_size=600, special_tokens=special, show_progress=False))


def hugging_face() -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=byte_level(), model_max_length=8)


def encoding() -> tiktoken.Encoding:
    """As tiktoken's own, with few merges."""
    merges = [b"th", b"the", b" the", b"er", b"  ", "日".encode()[:2], "日".encode()]
    ranks = {bytes([byte]): byte for byte in range(256)} | {merge: 256 + rank for rank, merge in enumerate(merges)}
    return tiktoken.Encoding(
        "handmade",
        pat_str=r" ?\p{L}+| ?\p{N}+|\s+|[^\s\p{L}\p{N}]+",
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 300},
    )


def characters():
    return lambda text: [(place, place + 1) for place in range(len(text))]


def nothing():
    return lambda text: []


KINDS: dict[str, Callable[[], Any]] = {
    "byte level": byte_level,
    "bert": lambda: word_pieces(normalizers.BertNormalizer()),
    "nfd": lambda: word_pieces(normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents()])),
    "unigram": unigram,
    "byte fallback": byte_fallback,
    "hugging face": hugging_face,
    "tiktoken": encoding,
    "characters": characters,
    "nothing": nothing,
}


@functools.cache
def tokenizer_of(kind: str) -> Any:
    return KINDS[kind]()


@functools.cache
def starts_of(kind: str, text: str) -> tuple[int, ...]:
    """Where each token starts, asked of the tokenizer itself."""
    tokenizer = tokenizer_of(kind)
    tokenizer = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if isinstance(tokenizer, Tokenizer):
        return tuple(start for start, _ in tokenizer.encode(text, add_special_tokens=False).offsets)
    if isinstance(tokenizer, tiktoken.Encoding):
        return tuple(tokenizer.decode_with_offsets(tokenizer.encode_ordinary(text))[1])
    return tuple(start for start, _ in tokenizer(text))


def check(text: str, kind: str, size: int, overlap: int) -> None:
    windows = split_tokens(text, tokenizer_of(kind), size, overlap)
    if not text:
        assert windows == []
        return
    assert (windows[0].start, windows[-1].end) == (0, len(text))
    for window in windows:
        assert window.text == text[window.start : window.end] != ""
    for one, other in pairwise(windows):
        assert one.start < other.start <= one.end < other.end
    if overlap == 0:
        assert "".join(window.text for window in windows) == text
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return
    starts = starts_of(kind, text)
    if overlap == 0:
        assert sum(window.tokens for window in windows) == len(starts)
    for window in windows:
        inside = {start for start in starts if window.start <= start < window.end}
        # Only one character that is many tokens makes a window of more than `size`.
        assert window.tokens <= size or len(inside) == 1


AWKWARD = (
    "ab the 12 .,'\n\r\t\x00\x85\u00a0\u3000\u200b\ufeff日本語가각\u1100\u1161\u11a8éÅe\u0301a\u0327\u0323ﬁﷺ½ǅİßẞ"
    "👍🏽👨\u200d👩\u200d👧🇯🇵𝔘\U0010ffff\ud800\udfff\ud83d\ude00"
)
# A fifth of the profile's, since each is split by every kind of tokenizer.
EXAMPLES = settings().max_examples // 5
any_text = st.text(st.sampled_from(AWKWARD) | st.characters(exclude_categories=()), max_size=40)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=EXAMPLES)
@given(text=any_text, size=st.sampled_from([1, 2, 3, 5, 128]), part=st.sampled_from([0, 0, 1, 2, 4]))
def test_any_unicode_text_comes_back(kind, text, size, part):
    check(text, kind, size, min(part, size - 1))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "overlap"), [(1, 0), (7, 0), (128, 0), (7, 3), (16, 15)])
def test_a_long_text_comes_back(kind, size, overlap):
    check(prose(300, seed=8) + " 日本語 👨‍👩‍👧 naïve\n\n" + prose(50, seed=9), kind, size, overlap)


def test_windows_have_the_asked_number_of_tokens():
    text = "one two three four five six seven"
    windows = split_tokens(text, word_offsets, chunk_size=3)
    assert windows == [
        TokenWindow("one two three ", 0, 14, 3),
        TokenWindow("four five six ", 14, 28, 3),
        TokenWindow("seven", 28, 33, 1),
    ]


@pytest.mark.parametrize("kind", ["byte level", "tiktoken", "byte fallback"])
def test_a_character_of_many_tokens_is_never_cut(kind):
    windows = split_tokens("👨👩👧", tokenizer_of(kind), chunk_size=2)
    assert [window.text for window in windows] == ["👨", "👩", "👧"]
    assert all(window.tokens >= 4 for window in windows)


@pytest.mark.parametrize("kind", ["byte level", "bert", "hugging face"])
def test_truncation_and_padding_are_not_applied_and_the_tokenizer_stays_as_it_is(kind):
    tokenizer = KINDS[kind]()
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    text = prose(60)
    expected = split_tokens(text, tokenizer, chunk_size=16)
    backend.enable_truncation(5)
    backend.enable_padding(length=64)
    before = backend.to_str()
    assert split_tokens(text, tokenizer, chunk_size=16) == expected
    assert len(expected) > 5
    assert backend.to_str() == before


def test_special_tokens_are_no_tokens_of_a_text():
    assert sum(window.tokens for window in split_tokens("ember", tokenizer_of("bert"), chunk_size=99)) == len(
        tokenizer_of("bert").encode("ember", add_special_tokens=False).ids
    )
    # Nor is a text that looks like one refused.
    check("before <|endoftext|> behind", "tiktoken", 4, 0)


both_splitters = pytest.mark.parametrize("split", [split_tokens, split_recursive])


@both_splitters
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        *(({"chunk_size": bad}, OptionError, "chunk_size must be an integer >= 1") for bad in (0, -1, 2.0, "3", True)),
        *(
            ({"chunk_size": 4, "chunk_overlap": bad}, OptionError, "chunk_overlap must be .* less than chunk_size=4")
            for bad in (-1, 4, 1.0, None, False)
        ),
        *(({"text": bad}, ChunkError, "must be a string") for bad in (None, 5, b"bytes", ["text"])),
    ],
    ids=str,
)
def test_what_cannot_be_split_is_refused(split, given, error, message):
    with pytest.raises(error, match=message) as caught:
        split(**{"text": "text", "tokenizer": word_offsets, "chunk_overlap": 0, **given})
    assert caught.value.value is [*given.values()][-1]


@both_splitters
@pytest.mark.parametrize("tokenizer", [None, "bert-base-uncased", 5, object()])
def test_a_tokenizer_of_another_kind_is_refused(split, tokenizer):
    with pytest.raises(TokenizerError, match=f"got {type(tokenizer).__name__}") as caught:
        split("text", tokenizer)
    assert caught.value.value is tokenizer
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    "offsets",
    [
        [(2, 3), (0, 1)],
        [(-1, 1)],
        [(0, 9)],
        [(3, 2)],
        [(0, 1), (1, None)],
        [("a", "b")],
        [("0", "1")],
        [(0.5, 1)],
        [(0, 1, 2)],
        [5],
        5,
        None,
        ["ab"],
        {"input_ids": [1, 2, 3]},  # of a Hugging Face tokenizer that is written in Python
    ],
)
def test_offsets_that_cannot_be_are_refused(offsets):
    with pytest.raises(TokenizerError):
        split_tokens("text", lambda text: offsets)


def test_the_error_of_a_tokenizer_function_is_the_callers():
    def broken(text):
        raise LookupError(text)

    with pytest.raises(LookupError):
        split_tokens("text", broken)
