"""The parts of an experiment file that require trust: they could run code, send data, or read files elsewhere.

Only names are checked, before anything is imported, opened or called. Everything that is not known to be harmless
requires trust.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from oprag.compare.data.files import is_within
from oprag.compare.providers.endpoints import addresses_of, is_own_address, provider_of, shown_address
from oprag.compare.providers.names import CHAT_PROVIDERS, EMBEDDING_PROVIDERS, LOCAL, LOCAL_LIKELIHOOD
from oprag.errors import UntrustedExperimentError
from oprag.masking import describe
from oprag.token_counters import HUGGINGFACE, TIKTOKEN

__all__ = ["AskTrust", "TrustNeed", "check_trust", "describe_needs"]

_MAX_SHOWN = 30  # parts in a message
_MAX_LENGTH = 100  # characters of a value in a message

_CODE = "runs Python code"
_NO_PROVIDER = f"{_CODE}, or is a provider that oprag does not know"
_MODEL_FILES = "loads a model from files or from the Hugging Face Hub"
_ADDRESS = "sends texts to an address set in the file"
_KEY = "sends the value of this environment variable"
_SETTING = "may name an address, a file or code; it is not one of the settings known to be harmless"
_OUTSIDE = "is a hidden file, or is outside the folder of the experiment file"
_PAID = "treats the embedder as free, so that even a plan calls it"

_HARMLESS = ("name", "grid", "judges", "prompts", "prices", "limits", "max_concurrency", "give_up_after")
_HARMLESS_SETTINGS = frozenset(
    (
        *("name", "retries", "window", "temperature", "top_p", "top_k", "min_p", "seed", "stop", "stop_sequences"),
        *("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict", "num_ctx", "stream_usage"),
        *("frequency_penalty", "presence_penalty", "repeat_penalty", "repetition_penalty", "verbosity", "effort"),
        *("reasoning", "reasoning_effort", "thinking", "thinking_budget", "thinking_level"),
        *("timeout", "request_timeout", "max_retries"),
        *("streaming", "disable_streaming", "n", "logprobs", "top_logprobs", "service_tier", "use_responses_api"),
        *("question_prefix", "document_prefix", "dimensions", "output_dimensionality", "chunk_size"),
        *("embedding_ctx_length", "check_embedding_ctx_length", "show_progress_bar"),
    )
)
_PROVIDERS = {"models": CHAT_PROVIDERS, "embedders": EMBEDDING_PROVIDERS}
_FROM_FILES = {"models": ("gguf", "transformers", HUGGINGFACE), "embedders": (HUGGINGFACE,)}
_LITELLM = "litellm"  # the names of its models can be addresses
_REMOTE = "trust_remote_code"


class TrustNeed(NamedTuple):
    """A part of an experiment file that requires trust: its place, its shortened value, and the reason."""

    place: str
    value: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place} = {self.value}: {self.reason}"


AskTrust = Callable[[Sequence[TrustNeed]], bool]
"""A function that decides whether these parts are trusted, for example by a prompt on the terminal."""


def check_trust(given: Mapping[str, Any], folder: Path, *, trust: bool | AskTrust) -> bool:
    """Whether the valid content of an experiment file is trusted; False if it does not require trust."""
    if trust is True:
        return True
    needs = tuple(need for name, value in given.items() for need in _needs_of(name, value, folder))
    if not needs:
        return False
    # `is True`, since the coroutine of an async function would be truthy.
    if callable(trust) and trust(needs) is True:
        return True
    raise UntrustedExperimentError(
        f"the file is not trusted, and these parts require trust:\n{describe_needs(needs)}\nReview the file; if you "
        "trust its author, pass --trust on the command line or trust=True in Python",
        needs,
    )


def describe_needs(needs: Sequence[TrustNeed]) -> str:
    """The parts that require trust, one per line."""
    more = [f"  and {len(needs) - _MAX_SHOWN:,} more"] if len(needs) > _MAX_SHOWN else []
    return "\n".join([*(f"  {need}" for need in needs[:_MAX_SHOWN]), *more])


def _needs_of(name: str, value: Any, folder: Path) -> Iterator[TrustNeed]:
    if name in ("data", "models", "embedders", "stores"):
        for one, part in value.items():
            place = f"{name}.{one}"
            yield from _data_needs(place, part, folder.resolve()) if name == "data" else _use_needs(name, place, part)
    elif name == "score_embedder":
        yield from _use_needs("embedders", name, value)
    elif name == "count_tokens":
        yield from _tokenizer_needs(name, value)
    elif name == "metrics":
        yield from (_need(f"{name}[{number}]", one, _CODE) for number, one in enumerate(value) if ":" in one)
    elif name not in _HARMLESS:
        yield _need(name, value, _SETTING)


def _data_needs(place: str, given: Mapping[str, Any], root: Path) -> Iterator[TrustNeed]:
    for option in ("path", "documents"):
        if option in given and not is_within(root, root / given[option]):
            yield _need(f"{place}.{option}", given[option], _OUTSIDE)


def _use_needs(part: str, place: str, given: Any) -> Iterator[TrustNeed]:
    """The needs of a store, model or embedder, given as a name or as a table with `use` and settings."""
    table = {"use": given} if isinstance(given, str) else given
    use = table["use"]
    if part == "stores":
        yield _need(place, use, _CODE)
        return
    reason = _why_named(part, use)
    if reason is not None:
        yield _need(place if isinstance(given, str) else f"{place}.use", use, reason)
    for name, value in table.items():
        if part == "embedders" and name == "tokenizer":
            yield from _tokenizer_needs(f"{place}.{name}", value)
        elif part == "embedders" and name == "paid":
            if value is not True:
                yield _need(f"{place}.{name}", value, _PAID)
        # The other keys of a function are its arguments, covered by the trust in the function.
        elif name != "use" and reason != _NO_PROVIDER and (why := _why_setting(name, value, use)):
            yield _need(f"{place}.{name}", value, why)


def _why_named(part: str, use: str) -> str | None:
    """Why the name of a model or embedder requires trust; None for packaged ones and known providers."""
    kind, colon, _ = use.partition(":")
    if use in {LOCAL, LOCAL_LIKELIHOOD} or not colon:
        # Without a colon LangChain infers the provider from the name; such a name is never imported.
        return None
    if kind in _FROM_FILES[part]:
        return _MODEL_FILES
    if kind not in _PROVIDERS[part]:
        return _NO_PROVIDER
    return _ADDRESS if "://" in use or kind == _LITELLM else None


def _why_setting(name: str, value: Any, use: str) -> str | None:
    """Why a setting requires trust; None if it is harmless."""
    if name == "api_key_env":
        return _KEY
    if name == _REMOTE or (isinstance(value, Mapping) and _REMOTE in value):
        return _CODE
    is_own = name == "base_url" and is_own_address(provider_of(use), value)
    if is_own or (name in _HARMLESS_SETTINGS and _is_plain(value)):
        return None
    return _ADDRESS if addresses_of({name: value}) else _SETTING


def _tokenizer_needs(place: str, given: str) -> Iterator[TrustNeed]:
    if ":" in given and given.partition(":")[0] != TIKTOKEN:
        yield _need(place, given, _MODEL_FILES if given.startswith(f"{HUGGINGFACE}:") else _CODE)


def _is_plain(value: Any) -> bool:
    """Whether a setting is a string, a number, or a flat list or table of them."""
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else (value,)
    return all(isinstance(one, str | int | float) for one in inner)


def _need(place: str, value: Any, reason: str) -> TrustNeed:
    if reason == _ADDRESS:
        # Shortened to the host, without a login.
        shown = ", ".join(map(shown_address, addresses_of({"address": value})))
    elif isinstance(value, Mapping | list):
        names = ", ".join(map(str, value)) if isinstance(value, Mapping) else ""
        shown = f"a table of {names}" if names else f"a {'table' if isinstance(value, Mapping) else 'list'}"
    else:
        shown = describe(value)
    return TrustNeed(_one_line(place), _one_line(shown), reason)


def _one_line(text: str) -> str:
    """Shorten and escape a text of the file, so that it cannot imitate other lines of a message."""
    text = text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
