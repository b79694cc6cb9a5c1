"""The check that an experiment file is data: it runs no code, and sends nothing to hosts that it may not name.

Only names are checked, before anything is validated, imported, opened or called, so that no message can show a secret.
What is not known to be harmless is refused: it is for an `Experiment` in Python.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from oprag._internal.masking import describe, listed, without_keys
from oprag.compare.providers.identity import LOCAL, is_loopback
from oprag.errors import ExperimentError
from oprag.index.tokenizers import BUILT_IN, TIKTOKEN

__all__ = ["check_data_only"]

# LangChain's providers without LiteLLM, whose names can be addresses, and Hugging Face, whose models are downloaded.
_EMBEDDING = frozenset(
    (
        *("azure_ai", "azure_openai", "bedrock", "cohere", "google_genai", "google_vertexai", "mistralai", "ollama"),
        "openai",
    )
)
_CHAT = _EMBEDDING | frozenset(
    (
        *("anthropic", "anthropic_bedrock", "baseten", "bedrock_converse", "bedrock_mantle_anthropic"),
        *("bedrock_mantle_openai", "deepseek", "fireworks", "google_anthropic_vertex", "groq", "ibm", "langsmith"),
        *("meta", "nvidia", "openrouter", "perplexity", "together", "upstage", "xai"),
    )
)
_PROVIDERS = {"models": _CHAT, "embedders": _EMBEDDING}
# Clients whose `base_url` is where texts are sent, and nothing else, with the variable for other addresses.
_ADDRESSES = {"openai": "OPENAI_BASE_URL", "ollama": "OLLAMA_HOST"}
_SETTINGS = frozenset(
    (
        *("use", "name", "temperature", "top_p", "top_k", "seed", "stop", "frequency_penalty", "presence_penalty"),
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict", "num_ctx", "stream_usage"),
        *("reasoning", "reasoning_effort", "thinking", "thinking_budget", "thinking_level", "verbosity"),
        *("timeout", "max_retries", "question_prefix", "document_prefix", "dimensions", "chunk_size"),
    )
)
_IN_PYTHON = "an experiment file is data; use an Experiment in Python for it"


def check_data_only(content: Mapping[str, Any]) -> None:
    """Refuse what could run code, send texts elsewhere, or be a secret; raises an ExperimentError with its key."""
    _check_use("embedders", "score_embedder", content.get("score_embedder", LOCAL))
    for part in _PROVIDERS:
        named = content.get(part)
        for name, one in named.items() if isinstance(named, Mapping) else ():
            _check_use(part, f"{part}.{listed([name])}", one)
    _check_counter("count_tokens", content.get("count_tokens", LOCAL), (*BUILT_IN, LOCAL))


def _check_use(part: str, place: str, given: Any) -> None:
    """Check a model or embedder, given as a name or as a table with `use` and settings."""
    table = given if isinstance(given, Mapping) else {"use": given}
    use = table.get("use")
    if not isinstance(use, str):
        problem = f'{place} must contain the key use with a name, such as use = "local", got {describe(use)}'
        raise ExperimentError(problem, use)
    provider, _, model = use.partition(":")
    if use != LOCAL and not (provider in _PROVIDERS[part] and model.strip() and "://" not in use):
        raise ExperimentError(f"{place} must be {LOCAL} or PROVIDER:MODEL, got {describe(use)}; {_IN_PYTHON}", use)
    for name, value in table.items():
        if part == "embedders" and name == "tokenizer":
            _check_counter(f"{place}.{name}", value, (LOCAL,))
        elif name == "base_url":
            # The address is not shown: it may contain a login.
            if provider not in _ADDRESSES or not is_loopback(value):
                other = f"set the environment variable {_ADDRESSES[provider]}" if provider in _ADDRESSES else _IN_PYTHON
                problem = "is only valid with openai or ollama, and for an address of this machine"
                raise ExperimentError(f"{place}.{name} {problem}; {other}", provider)
        # With paid = false, a plan would call the embedder.
        elif (part, name, value) != ("embedders", "paid", True) and not (name in _SETTINGS and _is_plain(value)):
            problem = f"{place}.{listed([name])} is not one of the settings that are known to be harmless; {_IN_PYTHON}"
            raise ExperimentError(f"{problem}, and an environment variable such as OPENAI_API_KEY for a key", name)


def _check_counter(place: str, given: Any, known: tuple[str, ...]) -> None:
    if given not in known and not (isinstance(given, str) and given.startswith(f"{TIKTOKEN}:")):
        problem = f"{place} must be one of {', '.join(known)}, {TIKTOKEN}:ENCODING, got {describe(given)}"
        raise ExperimentError(f"{problem}; {_IN_PYTHON}", given)


def _is_plain(value: Any) -> bool:
    """Whether a setting is a string, a number, or a flat list or table of them without a secret."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else (value,)
    if not all(isinstance(one, str | int | float) for one in inner):
        return False
    text = json.dumps(value, ensure_ascii=False)
    return isinstance(value, str) or without_keys(text) == text
