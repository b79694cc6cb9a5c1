"""Tokenizers by their names: what splits and counts in the units of a model."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from oprag.errors import ExperimentError, MissingExtraError
from oprag.masking import describe
from oprag.providers import LOCAL
from oprag.providers.reason import reason

__all__ = ["HUGGINGFACE", "TIKTOKEN", "NamedTokenizer", "tokenizer_of"]

HUGGINGFACE, TIKTOKEN = "huggingface", "tiktoken"
_FILE = "tokenizer.json"
_DIGITS = 16  # of a hash


@dataclass(frozen=True, eq=False)
class NamedTokenizer:
    """A tokenizer and what it is called.

    Attributes:
        identity: The same in every process; equal ones cut a text alike.
        tokenizer: A `tokenizers.Tokenizer` without truncation and padding, a tiktoken encoding, or a function that
            gives the offsets of the tokens; for `split_tokens`.
    """

    identity: str
    tokenizer: Any = field(repr=False)

    def count(self, text: str) -> int:
        """The tokens of a text, without those that stand around each text."""
        # Half of a surrogate pair is no character, and is refused.
        whole = text.encode("utf-8", "replace").decode("utf-8")
        if hasattr(self.tokenizer, "encode_ordinary"):
            return len(self.tokenizer.encode_ordinary(whole))
        if not hasattr(self.tokenizer, "encode"):
            return sum(1 for _ in self.tokenizer(whole))
        return len(self.tokenizer.encode(whole, add_special_tokens=False).ids)


@cache
def tokenizer_of(name: str, *, local_files_only: bool = False) -> NamedTokenizer:
    """A tokenizer, loaded once; code that comes with one is never run.

    Args:
        name: "local", that of the packaged embedder; "huggingface:PATH", a folder or a file `tokenizer.json`, or the
            name of a model in the hub; or "tiktoken:ENCODING", such as "tiktoken:o200k_base".
        local_files_only: Reject names of the hub: the path of "huggingface:PATH" must exist.

    Raises:
        ExperimentError: There is no such tokenizer, or it cannot be loaded.
        MissingExtraError: What it needs is not installed.
    """
    kind, _, which = name.partition(":")
    if name == LOCAL:
        from oprag.providers.embedders import local_embedder

        embedder = local_embedder()
        return NamedTokenizer(f"{LOCAL}({embedder.name})", embedder.tokenizer)
    if kind == HUGGINGFACE and which.strip():
        return _of_hugging_face(which, local_files_only=local_files_only)
    if kind == TIKTOKEN and which.strip():
        return _of_tiktoken(which)
    raise ExperimentError(
        f"a tokenizer must be {LOCAL}, {HUGGINGFACE}:PATH or {TIKTOKEN}:ENCODING, got {describe(name)}", name
    )


def _of_hugging_face(which: str, *, local_files_only: bool) -> NamedTokenizer:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise MissingExtraError(f"The tokenizer {which!r}", "local") from error
    path = Path(which).expanduser()
    # Windows logs in at the host of a share as soon as it is looked at.
    looked_at = not (local_files_only and path.drive.startswith("\\\\"))
    # Unlike pathlib, false for a name that the system refuses.
    is_folder = looked_at and os.path.isdir(path)  # noqa: PTH112
    file = path / _FILE if is_folder else path
    is_file = looked_at and os.path.isfile(file)  # noqa: PTH113
    if local_files_only and not (is_folder or is_file):
        raise ExperimentError(
            f"the tokenizer {which!r} is not a local folder or file, and names of the hub are not fetched here; "
            "download it and give its folder",
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
        raise ExperimentError(f"the tokenizer {which!r} cannot be loaded: {reason(error)}", which) from error
    # A copy, since the settings of a tokenizer belong to its model.
    tokenizer = Tokenizer.from_str(loaded.to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    digest = hashlib.sha256(tokenizer.to_str().encode()).hexdigest()[:_DIGITS]
    # After what it holds: a folder has another name on another machine.
    return NamedTokenizer(f"{HUGGINGFACE} {digest}", tokenizer)


def _by_transformers(which: str, *, local_files_only: bool) -> Any:
    """A tokenizer that has to be fetched, or that is kept in an older form."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise MissingExtraError(f"The tokenizer {which!r}", HUGGINGFACE) from error
    # Without a word about code of the model, transformers asks on the terminal whether to run it.
    tokenizer = AutoTokenizer.from_pretrained(which, trust_remote_code=False, local_files_only=local_files_only)
    return tokenizer.backend_tokenizer


def _of_tiktoken(which: str) -> NamedTokenizer:
    try:
        import tiktoken
    except ImportError as error:
        raise ExperimentError(
            f"the tokenizer {TIKTOKEN}:{which} needs a package: pip install tiktoken", which
        ) from error
    try:
        return NamedTokenizer(f"{TIKTOKEN}({which})", tiktoken.get_encoding(which))
    except Exception as error:
        known = ", ".join(tiktoken.list_encoding_names())
        raise ExperimentError(
            f"the encoding {which!r} cannot be loaded: {reason(error)}; tiktoken has {known}, and fetches each of them "
            "once",
            which,
        ) from error
