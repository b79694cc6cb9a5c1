"""Settings of models as plain values, without secrets and without what changes no result."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

__all__ = ["digest_of", "is_relevant", "plain", "without_secrets"]

# All settings count but those that are known to be secrets, or to change no result. A word of more than one meaning is
# not enough: `pooling_token` and `text_key` are settings. What is left out by mistake mixes up the results of two
# models; what counts by mistake costs a call.
_SECRETS = (
    r"(.*_)?(api_?key|api_token|(secret_)?access_key(_id)?|(access|auth|bearer|session|refresh|ad|security)_token"
    r"|token_provider|subscription_key|private_key|(client_)?secret|password|credentials?|authorization|cookies?)"
    r"|key|secret_key|token|hf_token|pat"
)
_HARMLESS = (
    r"(.*_)?(timeout|max_retries|batch_size|a?client|proxy|proxies|callback_manager)|retry_(min|max)_seconds"
    r"|(num_|max_)?workers|(max_)?concurrency|max_concurrent_requests|show_progress(_bar)?|verbose|callbacks?|multi_process"
    r"|devices?|target_devices|cache|embeddings_cache|cache_(folder|dir)|rate_limiter|keep_alive|reuse_client|class_name"
    r"|metadata|tags|logger"
)
_IRRELEVANT = re.compile(f"{_SECRETS}|{_HARMLESS}")
# Addresses are shown, so of their queries nothing stays that may be a secret.
_SECRET_IN_QUERY = re.compile(r"(.*_)?(key|secret|password|token|pat|credentials?|sig|signature)")
_DIGITS = 16  # of a hash
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://\S+")


def is_relevant(name: str) -> bool:
    """Whether a setting, or a header, of this name may change a result, and is no secret."""
    return _IRRELEVANT.fullmatch(_plain_name(name)) is None


def _plain_name(name: str) -> str:
    return name.lstrip("_").replace("-", "_").lower()


def _refused(value: Any) -> Any:
    raise TypeError(type(value).__name__)


def plain(value: Any, other: Callable[[Any], Any] = _refused) -> Any:
    """A setting as JSON has it; secrets and what changes no result are left out of mappings.

    Args:
        value: The setting.
        other: Tells what an object is that JSON does not have.

    Raises:
        TypeError: It is an object that does not tell what it is.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Enum | Path):
        return str(value)
    if isinstance(value, Mapping):
        inner = {str(name): part for name, part in value.items() if is_relevant(str(name))}
        return {name: plain(part, other) for name, part in inner.items()}
    if isinstance(value, list | tuple | set | frozenset):
        parts = [plain(part, other) for part in value]
        return sorted(parts, key=repr) if isinstance(value, set | frozenset) else parts
    if hasattr(value, "get_secret_value"):
        return None
    return other(value)


def without_secrets(text: str) -> str:
    """A text; of an address neither who logs in there nor keys in its query."""
    if not _ADDRESS.fullmatch(text):
        return text
    try:
        parts = urlsplit(text)
        shown = [pair for pair in parse_qsl(parts.query) if not _SECRET_IN_QUERY.fullmatch(_plain_name(pair[0]))]
        query = urlencode(shown)
    except ValueError:
        return ""
    server = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{server}{parts.path}{'?' if query else ''}{query}"


def digest_of(settings: Any) -> str:
    """A hash of plain settings.

    Args:
        settings: Anything that JSON has; addresses in it are hashed without what logs in there.
    """
    text = json.dumps(_cleaned(settings), sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return {name: _cleaned(part) for name, part in value.items()}
    return [_cleaned(part) for part in value] if isinstance(value, list | tuple) else value
