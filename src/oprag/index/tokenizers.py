"""Tokenizers and token counters by name, as used in profiles, experiments and on the command line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from oprag._internal.masking import describe, reason
from oprag._internal.tokens import TokenCounter, approximate_tokens, count
from oprag.errors import MissingExtraError, OptionError

__all__ = [
    "BUILT_IN",
    "COUNTERS",
    "HUGGINGFACE",
    "LOCAL",
    "TIKTOKEN",
    "Counter",
    "NamedTokenizer",
    "counter_named",
    "tokenizer_named",
]

LOCAL, HUGGINGFACE, TIKTOKEN = "local", "huggingface", "tiktoken"


def _words(text: str) -> int:
    return len(text.split())


BUILT_IN: dict[str, TokenCounter] = {"approximate": approximate_tokens, "words": _words, "characters": len}
"""Token counters that need no tokenizer."""

COUNTERS = (*BUILT_IN, LOCAL, f"{TIKTOKEN}:ENCODING", f"{HUGGINGFACE}:PATH")
"""The names of token counters, with placeholders in capitals."""

_FILE = "tokenizer.json"
_HASH_DIGITS = 16


@dataclass(frozen=True, eq=False)
class NamedTokenizer:
    """A tokenizer with an identity.

    Attributes:
        identity: Stable across processes; tokenizers with the same identity tokenize identically.
        tokenizer: A `tokenizers.Tokenizer` without truncation and padding, a tiktoken encoding, or a function that
            returns the offsets of the tokens; for `split_tokens`.
    """

    identity: str
    tokenizer: Any = field(repr=False)

    def count(self, text: str) -> int:
        """Number of tokens of a text, without special tokens."""
        # Tokenizers reject lone surrogates.
        whole = text.encode("utf-8", "replace").decode("utf-8")
        if hasattr(self.tokenizer, "encode_ordinary"):
            return len(self.tokenizer.encode_ordinary(whole))
        if not hasattr(self.tokenizer, "encode"):
            return sum(1 for _ in self.tokenizer(whole))
        return len(self.tokenizer.encode(whole, add_special_tokens=False).ids)


@dataclass(frozen=True)
class Counter:
    """A token counter, for the option `count_tokens`.

    Attributes:
        name: Its name in files and tables.
        identity: Stable across processes; counters with the same identity count identically.
    """

    name: str
    identity: str
    _count: Callable[[str], Any] = field(repr=False, compare=False)
    _made_by: Callable[[str], Counter] | None = field(default=None, repr=False, compare=False)

    def __call__(self, text: str) -> int:
        """Number of tokens of a text."""
        return count(text, self._count)

    def __reduce__(self) -> Any:
        # Pickled by name and loaded again: tokenizers are large, and some cannot be pickled.
        return super().__reduce__() if self._made_by is None else (self._made_by, (self.name,))


def counter_named(name: str, *, local_files_only: bool = False) -> Counter:
    """Return the token counter with this name.

    Example:
        >>> counter_named("words")("Order is kept.")
        3
    """
    if name in BUILT_IN:
        return Counter(name, name, BUILT_IN[name], counter_named)
    kind, _, which = name.partition(":")
    if name != LOCAL and (kind not in (HUGGINGFACE, TIKTOKEN) or not which.strip()):
        raise OptionError(f"a token counter must be one of {', '.join(COUNTERS)}, got {describe(name)}", name)
    tokenizer = tokenizer_named(name, local_files_only=local_files_only)
    made_by = partial(counter_named, local_files_only=local_files_only)
    return Counter(name, tokenizer.identity, tokenizer.count, made_by)


@cache
def tokenizer_named(name: str, *, local_files_only: bool = False) -> NamedTokenizer:
    """Return the tokenizer with this name, loaded once; code from a model repository is never run."""
    kind, _, which = name.partition(":")
    if name == LOCAL:
        from oprag.embedding.static import local_embedder

        embedder = local_embedder()
        return NamedTokenizer(f"{LOCAL}({embedder.name})", embedder.tokenizer)
    if kind == HUGGINGFACE and which.strip():
        return _of_hugging_face(which, local_files_only=local_files_only)
    if kind == TIKTOKEN and which.strip():
        return _of_tiktoken(which)
    raise OptionError(
        f"a tokenizer must be {LOCAL}, {HUGGINGFACE}:PATH or {TIKTOKEN}:ENCODING, got {describe(name)}", name
    )


def _of_hugging_face(which: str, *, local_files_only: bool) -> NamedTokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError(f"The tokenizer {describe(which)}", "local") from error
    path = Path(which).expanduser()
    # On Windows, testing a path on a network share sends the user's credentials to its host.
    may_test = not (local_files_only and path.drive.startswith("\\\\"))
    # Unlike pathlib, os.path returns False for a name that the system rejects.
    is_folder = may_test and os.path.isdir(path)  # noqa: PTH112
    file = path / _FILE if is_folder else path
    is_file = may_test and os.path.isfile(file)  # noqa: PTH113
    if local_files_only and not (is_folder or is_file):
        raise OptionError(
            f"the tokenizer {describe(which)} is not a local folder or file, and tokenizers are not downloaded here; "
            "download it and give the path of its folder",
            which,
        )
    try:
        if is_file:
            loaded = Tokenizer.from_file(str(file))
        else:
            loaded = _by_transformers(str(path) if is_folder else which, local_files_only=local_files_only)
    except MissingExtraError:
        raise
    except Exception as error:
        raise OptionError(f"the tokenizer {describe(which)} cannot be loaded: {reason(error)}", which) from error
    # A copy, since the original belongs to its model.
    tokenizer = Tokenizer.from_str(loaded.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # Hash of the content, since the path differs between machines.
    digest = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()[:_HASH_DIGITS]
    return NamedTokenizer(f"{HUGGINGFACE} {digest}", tokenizer)


def _by_transformers(which: str, *, local_files_only: bool) -> Any:
    """Load a tokenizer that must be downloaded, or that is stored in an older format."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingExtraError(f"The tokenizer {describe(which)}", HUGGINGFACE) from error
    # Without trust_remote_code=False, transformers prompts on the terminal whether to run the repository's code.
    tokenizer = AutoTokenizer.from_pretrained(which, trust_remote_code=False, local_files_only=local_files_only)
    return tokenizer.backend_tokenizer


def _of_tiktoken(which: str) -> NamedTokenizer:
    try:
        import tiktoken
    except ImportError as error:
        raise OptionError(
            f"the tokenizer {TIKTOKEN}:{which} requires the package tiktoken; install it with: pip install tiktoken",
            which,
        ) from error
    try:
        return NamedTokenizer(f"{TIKTOKEN}({which})", tiktoken.get_encoding(which))
    except Exception as error:
        known = ", ".join(tiktoken.list_encoding_names())
        raise OptionError(
            f"the encoding {describe(which)} cannot be loaded: {reason(error)}; tiktoken supports {known}, and "
            "downloads an encoding on first use",
            which,
        ) from error
