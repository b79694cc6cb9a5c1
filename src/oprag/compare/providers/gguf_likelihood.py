"""The likelihood of an answer by a GGUF file, through a llama.cpp server in this process."""

from __future__ import annotations

import hashlib
import threading
from functools import cached_property
from math import fsum
from pathlib import Path
from typing import Any

from oprag.compare.providers.likelihood import TokenLikelihood, common_prefix_length
from oprag.compare.providers.llama_server import LlamaServer, llama_parameters, start_llama_server
from oprag.errors import MissingExtraError, ModelError
from oprag.options import check_bool, check_count

__all__ = ["GgufLikelihood"]

_BIAS = 1e6  # above all differences of logits
_LISTED = (1_000, 1_000_000)  # tokens; the last is more than any vocabulary has
_LEAST = -104.0  # nats; single precision ends at e^-103.3, and the server's logarithm of 0 is a huge number
_BLOCK = 512  # tokens that are read at once
_MAGIC = b"GGUF"


class GgufLikelihood(TokenLikelihood):
    """Makes a llama.cpp server write the given answer, and reads how likely each token was.

    One token after the other is written, with a bias that lets no other one be chosen. The probability that the server
    reports is that of the model, without the bias: the softmax of its logits over the whole vocabulary, as a number of
    single precision. So a token that is less likely than e^-103 counts as e^-104.

    What is shared from one call to the next: a prompt that was scored last is not read again for another answer, and
    of a prompt that begins as the last one did, the common beginning is not read again, in blocks of 512 tokens. A
    figure does not depend on that, nor on the calls before: the rest is read in the very pieces in which it is read
    when nothing is shared. (Pieces of other sizes are rounded otherwise. With 4-bit weights that moves a figure by
    some hundredths of a nat, as another number of threads or another release of llama.cpp does.)

    Calls from several threads wait for each other. The file is loaded when it is first asked for anything but its name.

    Args:
        path: The model file.
        window: Maximum number of tokens of prompt and answer; None for the window that the model was trained with,
            which can need much memory.
        threads: How many threads compute; None for one less than the usable cores. Threads wait for each other at
            every layer, so with one a core, whatever else runs makes them many times slower.
        parse_special_tokens: Whether special tokens that are written out in a text, as in a chat template, are read as
            such. Else they are plain text, as is safe where documents of others are in the prompt.

    Raises:
        MissingExtraError: The extra `likelihood` is not installed.
        OptionError: An option is invalid.
        ModelError: The file is missing, or is no GGUF file.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        window: int | None = None,
        threads: int | None = None,
        parse_special_tokens: bool = False,
    ) -> None:
        check_count("window", window)
        check_count("threads", threads)
        check_bool("parse_special_tokens", parse_special_tokens)
        self._path = Path(path)
        self._parse_special_tokens = parse_special_tokens
        self._window = window
        self._threads = threads
        _check_gguf(self._path)
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._loaded: LlamaServer | None = None
        self._read: list[int] = []

    @property
    def window(self) -> int:
        """Maximum number of tokens of prompt and answer together."""
        # The server may have made it a little longer than it was told.
        return self._window or self._trained_window

    @cached_property
    def _trained_window(self) -> int:
        return int(self._server.request("/props")["default_generation_settings"]["n_ctx"])

    @property
    def _server(self) -> LlamaServer:
        """The server, which is started once."""
        with self._loading:
            if self._loaded is None:
                self._loaded = _started(self._path, self._window, self._threads)
            return self._loaded

    @cached_property
    def _first(self) -> list[int]:
        """The token that begins every text; where two are put around one, the second ends it."""
        return self._tokenized("", first=True)[:1]

    @cached_property
    def _whole(self) -> int:
        """A token that is a whole character."""
        return self._tokens("a")[-1]

    @cached_property
    def name(self) -> str:
        """The name of the file, with a digest of what is in it."""
        with self._path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        special = ", special tokens parsed" if self._parse_special_tokens else ""
        return f"gguf:{self._path.name}@{digest}{special}"

    def _mean_likelihood(self, given: list[int], scored: list[int]) -> float:
        with self._lock:
            if given != self._read:
                self._prepare(given)
            # Nothing is counted on if the server fails now.
            self._read = []
            # A grammar of token numbers would need one request, and fails at a token that ends inside a character.
            likelihoods = [
                self._token_likelihood(given + scored[:number], token) for number, token in enumerate(scored)
            ]
            self._read = given
        return fsum(likelihoods) / len(scored)

    def _token_likelihood(self, before: list[int], token: int) -> float:
        """The log-probability of one token after others. But for the last one, the server has read those."""
        likelihood = self._likelihoods(before, token, 1).get(token)
        if likelihood is not None:
            return max(_LEAST, likelihood)
        # The server says nothing of a token that ends inside a character. It is in the list of another one.
        for listed in _LISTED:
            likelihood = self._likelihoods(before, self._whole, listed).get(token)
            if likelihood is not None:
                return max(_LEAST, likelihood)
        raise ModelError(f"{self._path.name} does not tell the probability of the token {token}", token)

    def _likelihoods(self, before: list[int], token: int, listed: int) -> dict[int, float]:
        """The log-probabilities of a token, that is made to be written, and of the likeliest ones, by their numbers."""
        reply = self._complete(before, n_predict=1, n_probs=listed, logit_bias=[[token, _BIAS]], temperature=0)
        return {
            one["id"]: one["logprob"]
            for written in reply.get("completion_probabilities", [])
            for one in (written, *written["top_logprobs"])
        }

    def _prepare(self, given: list[int]) -> None:
        """Let the server read all but the last token, in blocks that begin at multiples of their size.

        It reads the last one with the answer, whether it has read it before or not.
        """
        # The last token of a prompt, as those of an answer, was read alone, and counts as not read.
        common = min(common_prefix_length(given, self._read), len(given) - 1, len(self._read) - 1)
        shared = max(0, common) // _BLOCK * _BLOCK
        if 0 < shared < len(given) - 1:
            # It would go on where the two part. One other token in that place makes it go on at the block.
            other = next(token for token in range(3) if token not in {given[shared], self._read[shared]})
            self._complete([*given[:shared], other], n_predict=0)
        if shared < len(given) - 1:
            self._complete(given[:-1], n_predict=0, cache_prompt=shared > 0)

    def _tokens(self, text: str) -> list[int]:
        return self._tokenized(text, parse_special=self._parse_special_tokens)

    def _tokenized(self, text: str, *, first: bool = False, parse_special: bool = False) -> list[int]:
        """The tokens of a text; with `first` those that begin (and end) every text as well."""
        body = {"content": text, "add_special": first, "parse_special": parse_special}
        tokens: list[int] = self._server.request("/tokenize", body)["tokens"]
        return tokens

    def _complete(self, tokens: list[int], **settings: Any) -> dict[str, Any]:
        """What the server says to these tokens; what it has read of them before is not read again."""
        reply: dict[str, Any] = self._server.request("/completion", {"prompt": tokens, "cache_prompt": True} | settings)
        return reply


def _check_gguf(path: Path) -> None:
    """Refuse what cannot be a model file, without loading it."""
    try:
        import xllamacpp  # noqa: F401 - whether it is there
    except ImportError as error:
        raise MissingExtraError("A likelihood by a GGUF file", "likelihood") from error
    try:
        with path.open("rb") as file:
            begins = file.read(len(_MAGIC))
    except OSError as error:
        raise ModelError(f"model file not found: {path}", path) from error
    if begins != _MAGIC:
        raise ModelError(f"{path} cannot be loaded as a GGUF model: it does not begin with GGUF", path)


def _started(path: Path, window: int | None, threads: int | None) -> LlamaServer:
    parameters = llama_parameters(path, window or 0, threads)
    parameters.n_batch = 4 * _BLOCK
    parameters.n_ubatch = _BLOCK
    parameters.warmup = False
    # The window is what was asked for, not what it thinks to fit.
    parameters.fit_params = False
    # No copies of older prompts, each of which would need much memory; only the last prompt is kept.
    parameters.cache_ram_mib = 0
    parameters.n_ctx_checkpoints = 0
    # Layers with a sliding window keep all, so that a new prompt can go on from any place of the last one.
    parameters.swa_full = True
    return start_llama_server(parameters)
