"""The check that an experiment file is data: it runs no code, and reads and contacts nothing but what it may name.

Only names are checked, before anything is imported, opened or called. What is not known to be harmless is refused:
code, other hosts and files elsewhere are for an `Experiment` in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oprag.compare.data.files import is_within
from oprag.compare.providers.names import CHAT_PROVIDERS, EMBEDDING_PROVIDERS, LOCAL
from oprag.compare.providers.spec import is_loopback
from oprag.errors import ExperimentError
from oprag.masking import describe, listed
from oprag.token_counters import BUILT_IN, TIKTOKEN

__all__ = ["check_data_only"]

# Names of LiteLLM can be addresses; those of Hugging Face are models that are downloaded.
_REFUSED = ("litellm", "huggingface")
_PROVIDERS = {"models": CHAT_PROVIDERS, "embedders": EMBEDDING_PROVIDERS}
# Clients whose `base_url` is where texts are sent, and nothing else.
_LOOPBACK = ("openai", "ollama")
_SETTINGS = frozenset(
    (
        *("use", "name", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "stop_sequences"),
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict", "num_ctx", "stream_usage"),
        *("frequency_penalty", "presence_penalty", "repeat_penalty", "repetition_penalty", "verbosity", "effort"),
        *("reasoning", "reasoning_effort", "thinking", "thinking_budget", "thinking_level"),
        *("timeout", "request_timeout", "max_retries"),
        *("streaming", "disable_streaming", "n", "logprobs", "top_logprobs", "service_tier", "use_responses_api"),
        *("question_prefix", "document_prefix", "dimensions", "output_dimensionality", "chunk_size"),
        *("embedding_ctx_length", "check_embedding_ctx_length", "show_progress_bar"),
    )
)
_IN_PYTHON = "an experiment file is data; use an Experiment in Python for it"


def check_data_only(given: Mapping[str, Any], folder: Path) -> None:
    """Refuse what could run code, send texts elsewhere, or read files outside of the folder.

    Args:
        given: The content of an experiment file, whose form is valid.
        folder: The folder of the file.

    Raises:
        ExperimentError: A value is refused; the message names its key.
    """
    for name, table in given["data"].items():
        _check_inside(f"data.{listed([name])}", table, folder.resolve())
    for part in ("models", "embedders"):
        for name, one in given.get(part, {}).items():
            _check_use(part, f"{part}.{listed([name])}", one)
    _check_use("embedders", "score_embedder", given.get("score_embedder", LOCAL))
    _check_counter("count_tokens", given.get("count_tokens", LOCAL), (*BUILT_IN, LOCAL))


def _check_inside(place: str, table: Mapping[str, Any], root: Path) -> None:
    for option in ("path", "documents"):
        if option in table and not is_within(root, root / table[option]):
            raise ExperimentError(
                f"{place}.{option} = {describe(table[option])} is a hidden file, or is outside the folder of the "
                "experiment file; move the data there, or use an Experiment in Python",
                table[option],
            )


def _check_use(part: str, place: str, given: Any) -> None:
    """Check a model or embedder, given as a name or as a table with `use` and settings."""
    table = {"use": given} if isinstance(given, str) else given
    use = table["use"]
    provider, _, model = use.partition(":")
    known = provider in _PROVIDERS[part] and provider not in _REFUSED and model.strip() and "://" not in use
    if use != LOCAL and not known:
        raise ExperimentError(f"{place} must be {LOCAL} or PROVIDER:MODEL, got {describe(use)}; {_IN_PYTHON}", use)
    for name, value in table.items():
        if part == "embedders" and name == "tokenizer":
            _check_counter(f"{place}.{name}", value, (LOCAL,))
        elif part == "embedders" and name == "paid":
            if value is not True:
                raise ExperimentError(f"{place}.paid = {value!r} would let a plan call the embedder; remove it", value)
        elif name == "base_url":
            _check_address(f"{place}.{name}", provider, value)
        elif name not in _SETTINGS or not _is_plain(value):
            raise ExperimentError(
                f"{place}.{listed([name])} is not one of the settings that are known to be harmless; {_IN_PYTHON}", name
            )


def _check_address(place: str, provider: str, address: Any) -> None:
    # The address is not shown: it may contain a login.
    if provider not in _LOOPBACK or not is_loopback(address):
        variable = {"openai": "OPENAI_BASE_URL", "ollama": "OLLAMA_HOST"}.get(provider)
        elsewhere = f"set the environment variable {variable}" if variable else _IN_PYTHON
        raise ExperimentError(
            f"{place} is only valid with openai or ollama, and for an address of this machine; {elsewhere}", provider
        )


def _check_counter(place: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known and not given.startswith(f"{TIKTOKEN}:"):
        raise ExperimentError(
            f"{place} must be one of {', '.join(known)}, {TIKTOKEN}:ENCODING, got {describe(given)}; {_IN_PYTHON}",
            given,
        )


def _is_plain(value: Any) -> bool:
    """Whether a setting is a string, a number, or a flat list or table of them."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else (value,)
    return all(isinstance(one, str | int | float) for one in inner)
