"""Keep keys, huge values and reprs of foreign objects out of messages.

Model clients repeat their requests in error messages, including keys and logins, and source names can be signed
addresses. Errors, warnings, notes, names and addresses are masked wherever they are raised, printed or stored. Content
is not masked: questions, documents, prompts, replies and answers are stored unchanged, since answers are verified
against replies. The author of a document chooses the length of names, so what is read for display is bounded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import PurePath
from typing import Any
from urllib.parse import unquote

from oprag._internal.text_table import safe

__all__ = ["clean", "describe", "error_text", "listed", "masked_error", "reason", "shown", "without_keys"]

_MASK = "***"
_MAX_VALUE_LENGTH = 200  # characters of a value in a message
_MAX_LIST_LENGTH = 10
_MAX_ERROR_LENGTH = 4_000  # characters of a foreign message: clients repeat whole pages
_MAX_PATH_LENGTH = 4_096  # as on Linux; longer names are not paths, so their start is shown
_MARGIN = 1_000  # characters at the end of a part that are read, but not shown: it may end within a secret
# The start of a path or an address, but not of text, JSON, HTML or a data: address.
_PATH = re.compile(r"(?!data:)[^\s/\\<'\"]{0,255}[/\\]", re.IGNORECASE)


def clean(text: str) -> str:
    """Mask keys and replace control characters."""
    return safe(without_keys(text))


def describe(value: Any) -> str:
    """A literal for plain data, the type name for other objects, whose repr may contain a key, be huge, or raise."""
    if isinstance(value, PurePath):
        value = str(value)
    text = _literal(value)
    if text is None and isinstance(value, list | tuple) and len(value) <= _MAX_LIST_LENGTH:
        items = [_literal(item) or "" for item in value]
        whole = f"[{', '.join(items)}]" if isinstance(value, list) else f"({', '.join(items)}{',' * (len(items) == 1)})"
        text = whole if all(items) else None
    if text is None:
        text = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"


def _literal(value: Any) -> str | None:
    """Plain data as a Python literal, and an enum member as its value; None for other objects."""
    if isinstance(value, str):
        return shown(value, _MAX_VALUE_LENGTH, repr)
    if isinstance(value, bool | None):
        return str(value)
    if isinstance(value, int):
        # Python refuses to convert integers of several thousand digits to text.
        return int.__repr__(value) if value.bit_length() <= 1_000 else None
    return float.__repr__(value) if isinstance(value, float) else None


def listed(names: Iterable[Any]) -> str:
    """Comma-separated names for a message, such as metadata keys, truncated if long; "none" if empty."""
    text = ""
    for name in names:
        plain = shown(name, _MAX_VALUE_LENGTH + 1) if isinstance(name, str) else ""
        text += f"{', ' if text else ''}{plain if plain and plain.isprintable() else describe(name)}"
        if len(text) > _MAX_VALUE_LENGTH:
            return f"{text[:_MAX_VALUE_LENGTH]}…"
    return text or "none"


def shown(text: str, longest: int, write: Callable[[str], str] = str, *, end: bool | None = None) -> str:
    """A foreign name, value or message for display: masked, then cut to at most `longest` characters.

    `write` converts the masked text, such as to a literal. Of a path or an address, the end is shown, since it has the
    file name, unless `end` says otherwise; of a text that is longer than any path, the start.
    """
    at_end = len(text) <= _MAX_PATH_LENGTH and (_PATH.match(text) is not None if end is None else end)
    # Masked before it is cut, because part of a key is not recognized.
    window = len(text) if at_end else longest + _MARGIN
    masked = without_keys(text[:window])
    if len(text) > window:
        masked = masked[: max(len(masked) - _MARGIN, masked.rfind(_MASK) + len(_MASK))]
    written = write(masked)
    if len(text) <= window and len(written) <= longest:
        return written
    return f"…{written[1 - longest :]}" if at_end else f"{written[: longest - 1]}…"


def masked_error(error: BaseException | None) -> str:
    """Class and message of an error, with keys and passwords masked."""
    return f"{type(error).__name__}: {error_text(error)}"


def error_text(error: BaseException | str | None) -> str:
    """Message of an error, with keys and passwords masked; truncated if long."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a foreign __str__ may raise anything
        return "its message cannot be read"
    return shown(text, _MAX_ERROR_LENGTH, end=False)


def reason(error: Exception) -> str:
    """The first line of the message of another package's error."""
    if callable(details := getattr(error, "errors", None)):
        # Of pydantic's validation errors, the details: the first line contains only the name of a class.
        told = [(one["loc"][:1], one.get("ctx", {}).get("error", one["msg"])) for one in details()]
        return error_text("; ".join(": ".join(map(str, [*place, problem])) for place, problem in told))
    # Some LangChain messages continue with pages of links.
    return error_text(error).strip().partition("\n")[0] or type(error).__name__


def without_keys(text: str) -> str:
    """Mask values of the environment, logins, values of secret names and keys of known providers, in linear time."""
    # Another thread may remove a variable during the iteration.
    environment = tuple((name, os.environ.get(name, "")) for name in list(os.environ))
    for pattern in (*_of_environment(environment), _KEY, _LOGIN, _NAMED):
        text = pattern.sub(_masked, text)
    return text


def _masked(found: re.Match[str]) -> str:
    # A period at the end belongs to the text around the value.
    return f"{found.groupdict().get('before', '')}{_MASK}{'.' * found['value'].endswith('.')}"


@lru_cache(maxsize=1)
def _of_environment(environment: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str], ...]:
    """A pattern of the secrets in environment variables; none without secrets."""
    # The longest first, since one may be a prefix of another; a short one only as a word of its own.
    found = sorted({value for name, text in environment for value in _secrets(name, text)}, key=len, reverse=True)
    values = (re.escape(one) if len(one) >= 12 else rf"(?<![^\W_]){re.escape(one)}(?![^\W_])" for one in found)
    return (re.compile(f"(?P<value>{'|'.join(values)})"),) if found else ()


def _secrets(name: str, text: str) -> Iterator[str]:
    logins = [one["value"].rpartition(":")[2] for one in _LOGIN.finditer(text)]
    for value in (text if _SECRET_NAME.fullmatch(name) else "", *logins, *map(unquote, logins)):
        # Not lines of dashes, words such as "postgres", numbers, addresses, and paths of key files.
        ordinary = len(set(value)) < 4 or (len(value) < 12 and (value.isalpha() or value.isdigit())) or "://" in value
        if len(value) >= 6 and not ordinary and not os.path.exists(value):  # noqa: PTH110 - pathlib rejects long values
            yield value


_SECRET_NAME = re.compile(
    r"(?i)(.*(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)|(.+_)?(AUTH|PASS|PWD|PAT|SAS))S?(_.*|\d*)"
)
# Patterns of likely secrets. Each takes linear time: it starts only at a word, reads a bounded number of characters, or
# matches everything that it has read.
_PART = r"(?:[^/\\\s@'\"<>%]|%(?!40|2F))++(?=@|%40)"
# The login of an address, escaped or not. Its password may contain "@" and "/"; a host has at most 253 characters.
_LOGIN = re.compile(
    r"(?i)(?P<before>(?<=[a-z0-9])(?::|%3A)(?:\\?/|%2F){2})"
    rf"(?P<value>{_PART}(?:(?:@|%40){_PART})*+|[^/\\\s@:'\"<>]{{0,99}}:(?!\d{{1,5}}/)[^\s@'\"<>]{{1,200}}(?=@)"
    r"|[^/\\\s@'\"<>]{256,}+)"
)
# A value next to the name of a secret, in an address, a text or a header. After a colon, a word of a sentence is not
# one; after "Basic" and "Bearer", a digit or padding tells them from prose.
_NAMED = re.compile(
    r"(?i)(?P<before>(?:[?&;](?:[\w.-]{0,40}?[-_.])?(?:api|access)?(?:key|token|secret|password|passwd|pwd|pass|pat"
    r"|auth|credentials?|sig|signature|jwt|session)=|\btoken="
    r"|(?<![a-z])(?:bearer|basic|apikey)\s{1,3}(?=[\w.~+/:=-]{8})(?=[\w.~+/:-]{0,200}[0-9=])"
    r"|(?<![a-z])(?:(?:api|access|account|auth|private|client|secret|session|security|subscription|bot|refresh|bearer"
    r"|service)[-_ ]?(?:key|token|secret)s?|pass(?:word|wd|phrase)|pwd|secret|credentials?|authorization)\\?['\"]?"
    r"(?: provided| given)?\s{0,3}(?:=|%3D|:(?!\s{0,3}[a-z]++\.? [a-z])|(?<=['\"]),(?=\s{0,3}b?['\"])))\s{0,3}"
    r"(?P<quote>b?\\?['\"])?(?:(?:basic|bearer|token|apikey|digest|negotiate)\s{1,3})?)"
    r"(?!(?:none|null|true|false|str|string)\b)(?P<value>(?(quote)[^'\"\\\n]++|[^\s,;&#'\"<>(){}\[\]\\]++))"
)
# At the start of a word, after the escape sequence of a line break, or after the code of a terminal color.
_KEY = re.compile(
    r"(?:(?<![^\W_])|(?<=\\[nrt])|(?<=\dm))(?P<value>(?:(?:sk|pk|rk|gsk|hf|xai|pplx|r8|nvapi|pcsk|jina|tvly|llx)[-_]"
    r"|lsv2_|gh[opsur]_|github_pat_|glpat-|xox[a-z]-|xapp-|npm_|pypi-|dckr_|AIza|ya29\.|hv[sbr]\.|dapi)"
    r"(?=[\w.-]{0,64}\d)(?=[\w.-]{0,64}?[^\W_]{10})[\w.-]{12,}+|eyJ[\w-]{5,}+\.[\w-]{5,}+(?:\.[\w-]*+){0,3}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}\b|-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]{0,40}-----|\Z))"
)
