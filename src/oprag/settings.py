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

# Settings that change no result, or change while the model stays the same: what connects to it, how fast, and who pays.
_IRRELEVANT = re.compile(
    r"(.*_)?(api_key|key|secret|password|token|pat|credentials?|headers?|timeout|max_retries|retry_\w+|batch_size"
    r"|chunk_size|workers|num_workers|concurrency|show_progress(_bar)?|multi_process|callbacks?|callback_manager|cache"
    r"|cache_folder|verbose|organization|project|user|metadata|tags|client|http_\w*client|async_\w+|logger|session"
    r"|proxy|proxies|class_name)"
)
_DIGITS = 16  # of a hash
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://\S+")


def is_relevant(name: str) -> bool:
    """Whether a setting of this name may change a result, and is no secret."""
    return _IRRELEVANT.fullmatch(name) is None


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
        query = urlencode([(name, value) for name, value in parse_qsl(parts.query) if is_relevant(name.lower())])
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
