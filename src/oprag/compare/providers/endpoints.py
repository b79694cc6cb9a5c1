"""Addresses in the settings of a model, and the keys that are sent there: only those that the user has named."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from oprag.errors import ExperimentError

__all__ = ["addresses_of", "is_local", "is_own_address", "lacks_key", "provider_of", "shown_address", "with_api_key"]

_NAMES = re.compile(r"(.*_)?(url|uri|base|host|hostname|endpoint|address|server|proxy|proxies)", re.IGNORECASE)
# Texts that may hold anything, and the address of the application, by which OpenRouter ranks it.
_TEXTS = ("stop", "stop_sequences", "app_url")
# The hosts of providers, to which their clients may send their keys.
_OWN = {
    "anthropic": "api.anthropic.com",
    "cohere": "api.cohere.com",
    "deepseek": "api.deepseek.com",
    "fireworks": "api.fireworks.ai",
    "groq": "api.groq.com",
    "mistralai": "api.mistral.ai",
    "openai": "api.openai.com",
    "openrouter": "openrouter.ai",
    "perplexity": "api.perplexity.ai",
    "together": "api.together.xyz",
    "xai": "api.x.ai",
}
# Their clients take a key as `api_key`, and with it look for no other. Those of clouds sign with all that they find.
_TAKE_KEY = {*_OWN, "azure_openai", "baseten", "nvidia", "upstage"}
# What clients read from the environment and send besides the key.
_ALSO_SENT = {
    "anthropic": ("ANTHROPIC_AUTH_TOKEN",),
    "azure_openai": ("AZURE_OPENAI_AD_TOKEN", "OPENAI_CUSTOM_HEADERS"),
    "ollama": ("OLLAMA_API_KEY",),
}
_OLLAMA = "ollama"
_NO_KEY = "-"  # clients refuse an empty one
_LONGEST = 100  # characters that are shown


def addresses_of(settings: Mapping[str, Any], provider: str = "") -> list[str]:
    """The addresses in settings, by their names or by `://`, at any depth, without the provider's own `base_url`."""
    foreign = {
        name: value for name, value in settings.items() if not (name == "base_url" and is_own_address(provider, value))
    }
    return [*_addresses(foreign, named=False)]


def _addresses(value: Any, *, named: bool) -> Iterator[str]:
    if isinstance(value, str):
        if value and (named or "://" in value):
            yield value
    elif isinstance(value, Mapping):
        for name, part in value.items():
            if name not in _TEXTS:
                yield from _addresses(part, named=named or _NAMES.fullmatch(str(name).replace("-", "_")) is not None)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _addresses(part, named=named)


def provider_of(name: Any, settings: Mapping[str, Any] = MappingProxyType({})) -> str:
    """The provider of PROVIDER:MODEL, or the one that LangChain's `model_provider` says; or an empty text."""
    if isinstance(said := settings.get("model_provider"), str):
        return said.replace("-", "_").lower()
    provider, colon, _ = name.partition(":") if isinstance(name, str) else ("", "", "")
    return provider if colon else ""


def is_own_address(provider: str, address: Any) -> bool:
    """Whether an address is on the provider's own host. What parsers read differently is not."""
    host = _OWN.get(provider)
    return (
        host is not None
        and isinstance(address, str)
        and re.fullmatch(rf"https://{re.escape(host)}(/[A-Za-z0-9_./-]*)?", address) is not None
    )


def is_local(address: str) -> bool:
    """Whether an address is that of this machine."""
    host = _parts(address)[1]
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def shown_address(address: str) -> str:
    """An address for people: scheme, host and port, without a login and without keys in a path or query."""
    scheme, host, port = _parts(address)
    return f"{scheme and f'{scheme}://'}{host}{port and f':{port}'}"[:_LONGEST] or "an unreadable address"


def _parts(address: str) -> tuple[str, str, str]:
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        port = parts.port
    except ValueError:
        return "", "", ""
    host = parts.hostname or ""
    return parts.scheme, host, "" if port is None else str(port)


def with_api_key(name: str, settings: Mapping[str, Any], variable: str | None) -> dict[str, Any]:
    """The settings of PROVIDER:MODEL with the API key of an environment variable.

    Clients find the key of their provider in the environment. Any other address is sent the key of the named variable
    alone, or the one among the settings; a client that would send others is refused.
    """
    provider = provider_of(name, settings)
    foreign = addresses_of(settings, provider)
    given = _has_key(provider, settings)
    if variable is not None and given:
        raise ExperimentError(f"{name} has a key already; leave api_key_env out", variable)
    key = None if variable is None else _value_of(variable)
    if foreign:
        _check_client(name, provider, shown_address(foreign[0]), variable)
        key = key or (None if given else _NO_KEY)
    if provider == _OLLAMA:
        # Its client takes no key, and reads this variable alone.
        if variable not in (None, *_ALSO_SENT[_OLLAMA]):
            raise ExperimentError(
                f"the client of {name} reads {_ALSO_SENT[_OLLAMA][0]} alone, got api_key_env = {variable!r}", variable
            )
        key = None
    return dict(settings) if key is None else {**settings, "api_key": key}


def lacks_key(name: Any, settings: Mapping[str, Any], variable: str | None) -> bool:
    """Whether an address is asked without a key, since none is named for it."""
    provider = provider_of(name, settings)
    foreign = provider in _TAKE_KEY and addresses_of(settings, provider)
    return bool(foreign) and variable is None and not _has_key(provider, settings)


def _has_key(provider: str, settings: Mapping[str, Any]) -> bool:
    return any(settings.get(one) is not None for one in ("api_key", f"{provider}_api_key"))


def _value_of(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise ExperimentError(f"api_key_env: the environment variable {variable!r} is not set, or is empty", variable)
    return value


def _check_client(name: str, provider: str, address: str, variable: str | None) -> None:
    """Refuse a client that would send keys to an address which are not meant for it."""
    if provider not in _TAKE_KEY and provider != _OLLAMA:
        raise ExperimentError(
            f"{name} would be asked at {address}, and its client could send keys of the environment there; use "
            "openai:MODEL for a server with OpenAI's protocol, set the environment variable for the address that the "
            "client reads, or pass a model that is made in Python",
            name,
        )
    for sent in (*_ALSO_SENT.get(provider, ()), f"{provider.upper()}_CUSTOM_HEADERS"):
        if os.environ.get(sent) and variable != sent:
            raise ExperimentError(
                f"the client of {name} would send the environment's {sent} to {address}; unset it"
                + (f", or say api_key_env = {sent!r}" if provider == _OLLAMA else ""),
                sent,
            )
