"""Addresses in the settings of a model, and API keys: a key is only sent to an address that the user chose it for."""

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
# Settings that are not addresses: free text, and the URL of the application, which OpenRouter uses in its rankings.
_TEXTS = ("stop", "stop_sequences", "app_url")
# The default hosts of providers: their clients may send their own keys there.
_OWN_HOSTS = {
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
# Clients that accept `api_key` and then ignore other keys. Clients of cloud platforms use any credentials they find.
_ACCEPT_KEY = {*_OWN_HOSTS, "azure_openai", "baseten", "nvidia", "upstage"}
# Environment variables that clients also send, in addition to the key.
_ALSO_SENT = {
    "anthropic": ("ANTHROPIC_AUTH_TOKEN",),
    "azure_openai": ("AZURE_OPENAI_AD_TOKEN", "OPENAI_CUSTOM_HEADERS"),
    "ollama": ("OLLAMA_API_KEY",),
}
_OLLAMA = "ollama"
_NO_KEY = "-"  # a placeholder, since clients reject an empty key
_MAX_LENGTH = 100  # characters of a shown address


def addresses_of(settings: Mapping[str, Any], provider: str = "") -> list[str]:
    """The addresses in settings, at any depth, except a `base_url` on the provider's own host.

    A value is an address if its name is one of an address, such as `endpoint`, or if it contains `://`.
    """
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
    """The provider: LangChain's setting `model_provider`, or that of PROVIDER:MODEL, or an empty string."""
    if isinstance(setting := settings.get("model_provider"), str):
        return setting.replace("-", "_").lower()
    provider, colon, _ = name.partition(":") if isinstance(name, str) else ("", "", "")
    return provider if colon else ""


def is_own_address(provider: str, address: Any) -> bool:
    """Whether an address is on the provider's own host; False for anything that URL parsers could read differently."""
    host = _OWN_HOSTS.get(provider)
    return (
        host is not None
        and isinstance(address, str)
        and re.fullmatch(rf"https://{re.escape(host)}(/[A-Za-z0-9_./-]*)?", address) is not None
    )


def is_local(address: str) -> bool:
    """Whether an address is on this machine."""
    host = _parts(address)[1]
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def shown_address(address: str) -> str:
    """An address for display: only scheme, host and port, since logins, paths and queries may contain secrets."""
    scheme, host, port = _parts(address)
    return f"{scheme and f'{scheme}://'}{host}{port and f':{port}'}"[:_MAX_LENGTH] or "an unreadable address"


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

    For the provider's own host the client finds its key in the environment. Another address only gets the key of the
    named variable, or the key in the settings; a client that would send other keys is rejected.
    """
    provider = provider_of(name, settings)
    foreign = addresses_of(settings, provider)
    given = _has_key(provider, settings)
    if variable is not None and given:
        raise ExperimentError(f"the settings of {name} already contain a key; remove api_key_env", variable)
    key = None if variable is None else _value_of(variable)
    if foreign:
        _check_client(name, provider, shown_address(foreign[0]), variable)
        key = key or (None if given else _NO_KEY)
    if provider == _OLLAMA:
        # Its client has no key argument and only reads this variable.
        if variable not in (None, *_ALSO_SENT[_OLLAMA]):
            raise ExperimentError(
                f"the client of {name} only reads {_ALSO_SENT[_OLLAMA][0]}, got api_key_env = {variable!r}", variable
            )
        key = None
    return dict(settings) if key is None else {**settings, "api_key": key}


def lacks_key(name: Any, settings: Mapping[str, Any], variable: str | None) -> bool:
    """Whether requests to a foreign address are sent without a key, since none is specified for it."""
    provider = provider_of(name, settings)
    foreign = provider in _ACCEPT_KEY and addresses_of(settings, provider)
    return bool(foreign) and variable is None and not _has_key(provider, settings)


def _has_key(provider: str, settings: Mapping[str, Any]) -> bool:
    return any(settings.get(one) is not None for one in ("api_key", f"{provider}_api_key"))


def _value_of(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise ExperimentError(f"api_key_env: the environment variable {variable!r} is not set or is empty", variable)
    return value


def _check_client(name: str, provider: str, address: str, variable: str | None) -> None:
    """Reject a client that would send a key to an address that the key is not meant for."""
    if provider not in _ACCEPT_KEY and provider != _OLLAMA:
        raise ExperimentError(
            f"{name} would be called at {address}, and its client could send keys from the environment there; use "
            "openai:MODEL for an OpenAI-compatible server, set the address in the environment variable that the client "
            "reads, or pass a model object made in Python",
            name,
        )
    for sent in (*_ALSO_SENT.get(provider, ()), f"{provider.upper()}_CUSTOM_HEADERS"):
        if os.environ.get(sent) and variable != sent:
            raise ExperimentError(
                f"the client of {name} would send the environment variable {sent} to {address}; unset it"
                + (f", or set api_key_env = {sent!r}" if provider == _OLLAMA else ""),
                sent,
            )
