"""Likelihood of answers with a GGUF model, through a llama.cpp server in this process."""

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
from oprag.options import check_count

__all__ = ["GgufLikelihood"]

_BIAS = 1e6  # larger than any difference between logits
_TOP_TOKENS = (1_000, 1_000_000)  # most likely tokens to list; the second number exceeds any vocabulary
_FLOOR = -104.0  # nats; single precision underflows at e^-103.3, and the server's log(0) is a huge negative number
_BLOCK = 512  # tokens that are evaluated at once
_MAGIC = b"GGUF"


class GgufLikelihood(TokenLikelihood):
    """Makes a llama.cpp server generate the given answer, and reads the probability of each token.

    The answer is generated token by token, with a logit bias that forces the given token. The server reports the
    probability of the model without the bias: the softmax of the logits over the whole vocabulary, in single precision.
    A token with a probability below e^-103 therefore counts as e^-104.

    Evaluation is shared between consecutive calls: the last prompt is not evaluated again for another answer, and if a
    prompt starts like the last one, the common prefix is not evaluated again, in blocks of 512 tokens. The result does
    not depend on earlier calls: the rest is evaluated in the same blocks as without sharing. (Other block sizes round
    differently. With 4-bit weights that changes a likelihood by a few hundredths of a nat, as do another number of
    threads or another release of llama.cpp.)

    Calls from several threads are serialized. The file is loaded on first use of anything but its name.

    Args:
        path: The model file.
        window: Maximum number of tokens of prompt and answer together; None for the context length that the model was
            trained with, which can need much memory.
        threads: Number of compute threads; None for one less than the usable cores. Threads synchronize at every
            layer, so with one thread per core any other process slows them down many times.

    Raises:
        MissingExtraError: The extra `local-llm` is not installed.
        OptionError: An option is invalid.
        ModelError: The file is missing or is not a GGUF file.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        window: int | None = None,
        threads: int | None = None,
    ) -> None:
        check_count("window", window)
        check_count("threads", threads)
        self._path = Path(path)
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
        # Not the server's own value: the server may round the window up.
        return self._window or self._trained_window

    @cached_property
    def _trained_window(self) -> int:
        return int(self._server.request("/props")["default_generation_settings"]["n_ctx"])

    @property
    def _server(self) -> LlamaServer:
        """The server, started on first use."""
        with self._loading:
            if self._loaded is None:
                self._loaded = _started(self._path, self._window, self._threads)
            return self._loaded

    @cached_property
    def _first(self) -> list[int]:
        """The token that starts every text; a tokenizer may also add one that ends it, which is dropped."""
        return self._tokenized("", first=True)[:1]

    @cached_property
    def _whole_character(self) -> int:
        """A token that is a complete character."""
        return self._tokens("a")[-1]

    @cached_property
    def name(self) -> str:
        """The file name, with a digest of the file contents."""
        with self._path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        return f"gguf:{self._path.name}@{digest}"

    def _mean_likelihood(self, given: list[int], scored: list[int]) -> float:
        with self._lock:
            if given != self._read:
                self._prepare(given)
            # If the server fails now, its cache is in an unknown state.
            self._read = []
            # A grammar of token ids would need only one request, but fails at a token that ends inside a character.
            likelihoods = [
                self._token_likelihood(given + scored[:number], token) for number, token in enumerate(scored)
            ]
            self._read = given
        return fsum(likelihoods) / len(scored)

    def _token_likelihood(self, before: list[int], token: int) -> float:
        """The log-probability of a token after others; the server has already evaluated those, except the last one."""
        likelihood = self._likelihoods(before, token, 1).get(token)
        if likelihood is not None:
            return max(_FLOOR, likelihood)
        # The server reports no probability of a forced token that ends inside a character: force another token, and
        # find this one in the list of the most likely tokens.
        for top in _TOP_TOKENS:
            likelihood = self._likelihoods(before, self._whole_character, top).get(token)
            if likelihood is not None:
                return max(_FLOOR, likelihood)
        raise ModelError(f"the server of {self._path.name} does not report the probability of token {token}", token)

    def _likelihoods(self, before: list[int], token: int, top: int) -> dict[int, float]:
        """The log-probabilities of a forced token and of the `top` most likely tokens, by token id."""
        reply = self._complete(before, n_predict=1, n_probs=top, logit_bias=[[token, _BIAS]], temperature=0)
        return {
            one["id"]: one["logprob"]
            for written in reply.get("completion_probabilities", [])
            for one in (written, *written["top_logprobs"])
        }

    def _prepare(self, given: list[int]) -> None:
        """Evaluate the prompt except its last token, in blocks that start at multiples of the block size.

        The last token is always evaluated with the answer.
        """
        # The last token of the previous prompt was evaluated alone, like those of an answer, so it is not reused.
        common = min(common_prefix_length(given, self._read), len(given) - 1, len(self._read) - 1)
        shared = max(0, common) // _BLOCK * _BLOCK
        if 0 < shared < len(given) - 1:
            # The server would continue where the prompts diverge. A different token at the start of the block makes it
            # continue there.
            other = next(token for token in range(3) if token not in {given[shared], self._read[shared]})
            self._complete([*given[:shared], other], n_predict=0)
        if shared < len(given) - 1:
            self._complete(given[:-1], n_predict=0, cache_prompt=shared > 0)

    def _tokens(self, text: str) -> list[int]:
        return self._tokenized(text)

    def _tokenized(self, text: str, *, first: bool = False) -> list[int]:
        """The tokens of a text; with `first` also those that start (and end) every text."""
        # Special tokens in a text are plain text, which is safe for prompts that contain documents of others.
        body = {"content": text, "add_special": first, "parse_special": False}
        tokens: list[int] = self._server.request("/tokenize", body)["tokens"]
        return tokens

    def _complete(self, tokens: list[int], **settings: Any) -> dict[str, Any]:
        """The server's completion of these tokens; a prefix that it has already evaluated is reused."""
        reply: dict[str, Any] = self._server.request("/completion", {"prompt": tokens, "cache_prompt": True} | settings)
        return reply


def _check_gguf(path: Path) -> None:
    """Reject a file that is not a GGUF model, without loading it."""
    try:
        import xllamacpp  # noqa: F401 - only checks that it is installed
    except ImportError as error:
        raise MissingExtraError("Likelihood with a GGUF model", "local-llm") from error
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise ModelError(f"model file not found: {path}", path) from error
    if magic != _MAGIC:
        raise ModelError(f"{path} cannot be loaded as a GGUF model: it does not start with the bytes GGUF", path)


def _started(path: Path, window: int | None, threads: int | None) -> LlamaServer:
    parameters = llama_parameters(path, window or 0, threads)
    parameters.n_batch = 4 * _BLOCK
    parameters.n_ubatch = _BLOCK
    parameters.warmup = False
    # Use the given window, even if llama.cpp estimates that it does not fit in memory.
    parameters.fit_params = False
    # Keep only the last prompt: copies of older prompts would need much memory.
    parameters.cache_ram_mib = 0
    parameters.n_ctx_checkpoints = 0
    # Keep the full cache of sliding-window layers, so that a new prompt can share any prefix of the last one.
    parameters.swa_full = True
    return start_llama_server(parameters)
