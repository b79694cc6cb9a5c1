"""Keep keys, control characters, huge values and reprs of foreign objects out of messages.

Model clients repeat their requests in error messages, including keys and logins. Errors, warnings, notes, names and
URLs are masked wherever they are raised, printed or stored. Content is not masked: questions, documents, prompts,
replies and answers are stored unchanged, since answers are verified against replies.

Names, ids and metadata have any length that the author of a document chooses. They are printed with `shown`, which
bounds the output as well as the work: masking 1 MB takes a second.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, lru_cache
from numbers import Number
from pathlib import PurePath
from types import FunctionType
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote

__all__ = [
    "CONTROL_CHARACTERS",
    "clean",
    "describe",
    "error_text",
    "listed",
    "masked_error",
    "reason",
    "safe",
    "shown",
    "shown_end",
    "start_of",
    "without_keys",
]

_MASK = "***"
_MAX_VALUE_LENGTH = 200  # characters of a value in a message
_MAX_LIST_LENGTH = 10
_MAX_ERROR_LENGTH = 4_000  # characters of a foreign message: clients repeat whole pages
_WINDOW = 2_000  # characters of a value that are read; the others are not masked, and not shown
_MARGIN = 1_000  # characters at the end of a window that are not shown, because it may end within a key
# A path or URL: nothing of text, JSON, HTML or a data: URL matches before the first slash.
_PATH = re.compile(r"(?!data:)[^\s/\\<'\"]{0,255}[/\\]", re.IGNORECASE)
_PARTS = re.compile(r"[/\\].*", re.DOTALL)
_START_OF_LOGIN = re.compile(r"(://)[^/\s@'\"<>]*\Z")
_MAX_NUMBER_BITS = 1_000  # bits; Python refuses to convert integers of several thousand digits to text
# Characters that a terminal interprets or cannot encode: control characters, text direction changes, lone surrogates.
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_MAX_PASSES = 4  # masking one secret can reveal that the adjacent text is a secret, too


def clean(text: str) -> str:
    """Mask keys and replace control characters."""
    return safe(without_keys(text))


def safe(text: str) -> str:
    """Replace terminal control characters, such as those of escape sequences, with U+FFFD.

    Windows line endings become Unix line endings.
    """
    return CONTROL_CHARACTERS.sub("\ufffd", text.replace("\r\n", "\n"))


def describe(value: Any) -> str:
    """Text for a value in a message: a literal for plain data, the type name for any other object.

    The repr of a foreign object may contain a key, be huge, or raise.
    """
    if isinstance(value, PurePath):
        value = str(value)
    elif type(value).__module__ == "numpy" and isinstance(value, Number):
        value = value.item()  # type: ignore[attr-defined]
    if isinstance(value, list | tuple) and len(value) <= _MAX_LIST_LENGTH and all(map(_is_plain, value)):
        items = ", ".join(map(_literal, value))
        text = f"[{items}]" if isinstance(value, list) else f"({items}{',' * (len(value) == 1)})"
    elif _is_plain(value):
        text = _literal(value)
    elif isinstance(value, type | FunctionType):
        text = f"the {'class' if isinstance(value, type) else 'function'} {value.__name__}"
    else:
        text = type(value).__name__
    return text if len(text) <= _MAX_VALUE_LENGTH else f"{text[: _MAX_VALUE_LENGTH - 1]}…"


def _is_plain(value: Any) -> bool:
    if isinstance(value, int):
        return value.bit_length() <= _MAX_NUMBER_BITS
    return value is None or isinstance(value, str | float)


def _literal(value: Any) -> str:
    """Plain data as a Python literal; for enum members, their value."""
    if isinstance(value, str):
        return shown(value, _MAX_VALUE_LENGTH, repr)
    if isinstance(value, bool | None):
        return str(value)
    return int.__repr__(value) if isinstance(value, int) else float.__repr__(value)


def listed(names: Iterable[Any]) -> str:
    """Comma-separated names for a message, such as metadata keys, truncated if long; "none" if empty."""
    text = ""
    for name in names:
        plain = shown(name, _MAX_VALUE_LENGTH + 1) if isinstance(name, str) else ""
        text += f"{', ' if text else ''}{plain if plain and plain.isprintable() else describe(name)}"
        if len(text) > _MAX_VALUE_LENGTH:
            return f"{text[:_MAX_VALUE_LENGTH]}…"
    return text or "none"


def shown(value: str, longest: int, write: Callable[[str], str] = str) -> str:
    """A foreign name or another value for display: masked, then cut to a maximum length.

    Of a long path, the end is shown, since it contains the file name; of any other value, the start.

    Args:
        value: The value.
        longest: Maximum number of characters.
        write: Converts the masked text, such as to a literal.
    """
    end = _end_of(value)
    if end is None:
        return start_of(value, longest, write)
    text = write(without_keys(end))
    return text if len(end) == len(value) and len(text) <= longest else f"…{text[1 - longest :]}"


def shown_end(name: str, longest: int) -> str:
    """The name of a source as a literal: masked, then cut in front, since names differ at their end; see `shown`."""
    if len(name) > _WINDOW:
        return shown(name, longest, repr)
    text = repr(without_keys(name[:]))
    return text if len(text) <= longest else f"…{text[1 - longest :]}"


def _end_of(value: str) -> str | None:
    """The end of a path; None for other values, and if the end could be the rest of a secret."""
    if not _PATH.match(value):
        return None
    if len(value) <= _WINDOW:
        return value[:]
    # A login, or a value in a query, could start before the window. So could a part of the path, which is skipped.
    if any(mark in value for mark in ("@", "%40", "?", "#", "=")):
        return None
    found = _PARTS.search(value, len(value) - _WINDOW)
    return found and found[0]


def start_of(text: str, longest: int, write: Callable[[str], str] = str) -> str:
    """The start of a foreign text for display, such as a message or a question; see `shown`."""
    window = max(_WINDOW, longest + _MARGIN)
    if len(text) <= window:
        # Masked before it is cut, because part of a key is not recognized.
        start = write(without_keys(text[:]))
        return start if len(start) <= longest else f"{start[: longest - 1]}…"
    masked = without_keys(_START_OF_LOGIN.sub(rf"\1{_MASK}", text[:window]))
    masked = masked[: max(len(masked) - _MARGIN, masked.rfind(_MASK) + len(_MASK))]
    return f"{write(masked)[: longest - 1]}…"


def masked_error(error: BaseException | None) -> str:
    """Class and message of an error, with keys and passwords masked."""
    return f"{type(error).__name__}: {error_text(error)}"


def error_text(error: BaseException | str | None) -> str:
    """Message of an error, with keys and passwords masked; truncated if long."""
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a foreign __str__ may raise anything
        return "its message cannot be read"
    return start_of(text, _MAX_ERROR_LENGTH)


def without_keys(text: str) -> str:
    """Mask keys, passwords and logins; idempotent.

    Masks secrets from environment variables, plain or escaped; values next to a name such as `api_key`; credentials in
    headers and URLs; and keys in the format of a known provider. Takes time linear in the length of the text.
    """
    # Another thread may remove a variable during the iteration.
    known = _known_secrets(tuple((name, os.environ.get(name, "")) for name in list(os.environ)))
    for _ in range(_MAX_PASSES):
        masked = _without_known(text, known)
        for pattern, replace in _patterns():
            masked = pattern.sub(replace, masked)
        if masked == text:
            break
        text = masked
    return text


# Secrets in environment variables.

_SECRET_NAME = re.compile(
    r"(.*(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|AUTH|COOKIE)S?|(.+_)?(PAT|PASS)|.+_(PWD|SAS))"
    r"(_?ID|_?[0-9]+)?",
    re.IGNORECASE,
)
# Names that contain such a word elsewhere. Variables with URLs have such names, too, so their values are excluded.
_SECRET_INSIDE = re.compile(
    r".*(SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|(API|ACCESS|AUTH|PRIVATE)_?(KEY|TOKEN)).*|(KEY|TOKEN)_.*",
    re.IGNORECASE,
)
# Names that are only used for secrets, so that even a plain word is masked.
_PASSWORD_NAME = re.compile(r"(.*(SECRET|PASSWORD|PASSWD|PASSPHRASE)S?|(.+_)?(PAT|PASS)|.+_PWD)", re.IGNORECASE)
_ALWAYS = 12  # minimum length of secrets that are also masked inside words
_SHORTEST, _SHORTEST_WORD = 5, 6
_DISTINCT = 4  # minimum number of distinct characters: lines of dashes and runs of zeros are not secrets
_PLAIN = re.compile(r"[0-9]+|(?:[A-Z]?[a-z]+|[A-Z]+)(?:[ _-](?:[A-Z]?[a-z]+|[A-Z]+))*")
# Words of ordinary messages, never masked, even if used as a password.
_ORDINARY = frozenset(
    {
        *("access", "active", "cached", "changed", "client", "closed"),
        *("connection", "database", "default", "disabled", "enabled", "example"),
        *("failed", "ignored", "invalid", "localhost", "missing", "nothing"),
        *("password", "postgres", "private", "public", "refused", "required"),
        *("retrieval", "secret", "server", "service", "setting", "string"),
        *("timeout", "unknown", "username"),
    }
)
_LIST = re.compile(r"[^\s,;\"'{}-][^\s,;\"'{}]*+(?:[\s,;]++[^\s,;\"'{}]*+)+")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}+")


class _KnownSecret(NamedTuple):
    """A secret from an environment variable.

    Attributes:
        value: The secret.
        anywhere: Whether it is also masked inside words.
    """

    value: str
    anywhere: bool


def _without_known(text: str, known: Collection[_KnownSecret]) -> str:
    """Mask the secrets from environment variables."""
    found_forms = {
        (form, one.anywhere)
        for one in known
        for form in _forms(one.value)
        # Most texts contain none, and this is much faster than a pattern.
        if form in text
    }
    if found_forms:
        # Longest first, since one may be a prefix of another.
        patterns = (
            re.escape(form) if anywhere else rf"(?<![A-Za-z0-9]){re.escape(form)}(?![A-Za-z0-9])"
            for form, anywhere in sorted(found_forms, key=lambda one: (-len(one[0]), one))
        )
        text = re.sub("|".join(patterns), _MASK, text)
    values = [one.value.encode("utf-8", "surrogateescape") for one in known]
    return _BASE64.sub(lambda found: _MASK if _encodes_any(found[0], values) else found[0], text) if values else text


@lru_cache(maxsize=4)  # checking every variable takes a hundred times longer than masking most texts
def _known_secrets(environment: tuple[tuple[str, str], ...]) -> frozenset[_KnownSecret]:
    return frozenset(_found_in(environment))


def _found_in(environment: Iterable[tuple[str, str]]) -> Iterator[_KnownSecret]:
    for name, value in environment:
        if _SECRET_NAME.fullmatch(name) or (_SECRET_INSIDE.fullmatch(name) and "://" not in value):
            strict = _PASSWORD_NAME.fullmatch(name) is not None
            yield from _known(value.strip(), strict)
            # A variable may contain a list of secrets.
            for part in re.split(r"[\s,;]+", value) if _LIST.fullmatch(value) else ():
                yield from _known(part, strict)
        if "=" in value:
            for found in _assigned().finditer(value):
                yield from _known(found["value"] or found["quoted"], strict=True)
        if "://" in value and "@" in value:
            for found in _login().finditer(value):
                user, colon, password = found["login"].partition(":")
                for part in (password or user, found["login"]) if colon else (user,):
                    yield from _known(part, strict=bool(colon))
                    yield from _known(unquote(part), strict=bool(colon))


def _known(value: str, strict: bool) -> Iterator[_KnownSecret]:  # noqa: FBT001
    """Yield the value as a secret, unless it could be a word or number in ordinary text."""
    if len(value) < _SHORTEST or len(set(value)) < _DISTINCT or value.lower() in _ORDINARY:
        return
    # The path of a key file is not a secret, and error messages need it.
    if value.startswith(("/", "~", ".")) and os.path.exists(os.path.expanduser(value)):  # noqa: PTH110, PTH111
        return
    if len(value) < _ALWAYS and _PLAIN.fullmatch(value) and not (strict and len(value) >= _SHORTEST_WORD):
        return
    yield _KnownSecret(value, len(value) >= _ALWAYS)


@cache
def _forms(value: str) -> frozenset[str]:
    """The forms of a secret: unchanged, and escaped as in JSON, Python, URLs and HTML."""
    encoders: tuple[Callable[[str], str], ...] = (
        str,
        lambda one: json.dumps(one)[1:-1],
        lambda one: json.dumps(one, ensure_ascii=False)[1:-1],
        lambda one: repr(one)[1:-1],
        lambda one: ascii(one)[1:-1],
        lambda one: quote(one, safe="", errors="surrogateescape"),
        lambda one: quote(one, errors="surrogateescape"),
        lambda one: quote_plus(one, errors="surrogateescape"),
        html.escape,
    )
    forms = {encode(value) for encode in encoders}
    forms |= {json.dumps(form)[1:-1] for form in forms}
    return frozenset(forms | {re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), form) for form in forms})


def _encodes_any(run: str, values: Iterable[bytes]) -> bool:
    decoded = _decoded(run)
    return any(value in decoded for value in values)


def _decoded(run: str) -> bytes:
    """Decode Base64 of either alphabet, padded or not; empty if invalid."""
    plain = run.replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain[: len(plain) - (len(plain) % 4 == 1)] + "=" * (-len(plain) % 4 % 3))
    except (binascii.Error, ValueError):
        return b""


# Patterns of likely secrets. Each takes linear time: it starts only at the beginning of a run of characters, reads a
# bounded number of characters, or matches everything that it has read.

_IN_URL = r"(?::|%3A)(?:\\?/|%2F){2}"
# The letters of an escape sequence or a terminal color code are not part of the following word.
_ESCAPED = (
    r"(?<=\\[abfnrtv])|(?<=%[0-9A-Fa-f]{2})|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
    r"|(?<=[\[;][0-9]m)|(?<=[\[;][0-9]{2}m)"
)
# The start of a word.
_BEGIN = rf"(?:(?<![A-Za-z0-9])|{_ESCAPED})"

# Prefixes of keys of known providers.
_PREFIXES = (
    r"(?:sk|pk|rk|gsk|csk|hf|api_org|xai|pplx|r8|nvapi|lsv2|pcsk|jina|tvly|llx|tgp_v1|esecret)[-_]"
    r"|gh[opsur]_|github_pat_|gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-|xox[a-z](?:\.xox[a-z])?-|xapp-|xwfp-"
    r"|do[opr]_v1_|npm_|pypi-|dckr_(?:pat|oat)_|shp(?:at|ss|ca|pa|tka)_|sq0[a-z]{3}-|rubygems_|lin_(?:api|oauth)_|ntn_"
    r"|figd_|mxb_|vck_|sntry[su]_|gl(?:sa|c)_|NRAK-|PMAK-|pul-|whsec_|ph[cx]_|sb_secret_|ATATT3|ATCTT3|ATBB|GOCSPX-"
    r"|AIza|ya29\.|hv[sbr]\.|dapi|1//0|AGE-SECRET-KEY-1|LTAI"
)
# Prefixes that ordinary names have, too.
_COMMON_PREFIXES = r"(?:pa|al|co|fw|fpk|fc|rnd|sbp|nk|up|rpa|key|secret|ls_)[-_]|sl\.|EAA"
_SCHEMES = "basic|bearer|token|apikey|api-key|digest|negotiate|key"
_SECRETS = (
    r"(?:api|access|account|auth|subscription|private|client|shared[-_ ]?access|signing|encryption|master|bearer"
    r"|refresh|session|security|service|personal[-_ ]?access|oauth|id|jwt|bot|webhook|deploy|admin|user"
    r"|secret[-_ ]?access|secret|hf|csrf|xsrf)[-_ ]?(?:key|token|secret)s?(?:[-_ ]?id)?"
    r"|pass(?:word|wd|phrase|wort)?|pwd|secret|credentials?|authorization"
)
_IN_QUERY = r"key|token|secret|password|passwd|pwd|pass|pat|auth|credentials?|sig|signature|accesskeyid|jwt|session"
_MASKED_HEADER = re.compile(rf"(?:{_SCHEMES})\s+\*\*\*", re.IGNORECASE)
_NO_SECRET = frozenset({"none", "null", "true", "false", "nil", "undefined", "str", "string", "secretstr", _MASK})


@cache
def _login() -> re.Pattern[str]:
    """Matches the login in a URL, with or without a password; the password may contain unescaped slashes."""
    return re.compile(
        rf"(?<=[A-Za-z0-9])(?P<before>{_IN_URL})"
        r"(?P<login>(?:[^/\\\s@'\"<>%]|%(?!40|2F))++(?=@|%40)(?:(?:@|%40)(?:[^/\\\s@'\"<>%]|%(?!40|2F))++(?=@|%40)){0,4}"
        r"|[^/\\\s@:'\"<>]{0,99}:(?![0-9]{1,5}/)[^\s@'\"<>]{1,200}(?=@))",
        re.IGNORECASE,
    )


@cache
def _assigned() -> re.Pattern[str]:
    """Matches a value next to the name of a secret, quoted or bare."""
    return re.compile(
        rf"(?<![A-Za-z])(?P<before>(?:{_SECRETS}|(?P<token>token|auth))"
        r"(?:\\?['\"])?(?: (?:provided|given|used|is|was))?\s{0,3}"
        r"(?:=>?|:|%3D|(?<=['\"]),(?=\s{0,3}b?['\"])(?(token)(?!)))(?P<space>\s{0,3}))"
        r"(?:(?P<open>b?\\?['\"])(?P<quoted>[^'\"\\\n]++)|(?P<value>[^\s,;&'\"<>(){}\[\]\\]++))",
        re.IGNORECASE,
    )


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]:
    """The patterns and their replacement functions, the more specific ones before names of secrets."""
    header = r"\\?['\"]?\s{0,3}[:=,]\s{0,3}(?:b?\\?['\"])?"
    gap = r"(?:\s{1,3}|%20|\+)"
    # A bracket, comma or period at the end belongs to the text around a URL.
    inside, around = r"[^&\s'\"#;<>\\)\]},.]", r"[)\]},.]"
    in_query = rf"(?:{inside}++|{around}++(?={inside}))++"
    # A URL without a scheme. Other strings contain a colon and an at sign, too, such as mailto:ada@example.org.
    bare_login = (
        r"(?i)(?<![\w.:/+-])(?!(?:mailto|xmpp|sips?|acct|data|urn|pkg):)[\w.+%-]{1,64}:[^\s/@:'\"<>]{3,128}"
        r"(?=@(?:localhost|[\w-]{1,63}(?:\.[\w-]{1,63}){0,8}\.[a-z]{2,24}|[0-9.]{7,15})\b)"
    )
    simple = (
        r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]{0,40}-----|\Z)",
        rf"(?i)(?P<before>[?&;](?:[\w.-]{{0,40}}?[-_.])?(?:api|access)?(?:{_IN_QUERY})=){in_query}",
        rf"(?i)(?P<before>cookie{header}[^'\"\n=]{{1,99}}=)[^'\"\n]++",
        rf"(?i)(?P<before>authorization{header}(?:(?:{_SCHEMES})\s{{1,3}}))[^\s,'\"\\]++",
        rf"(?i)(?P<before>(?<![A-Za-z])bearer{gap})(?!(?:auth|token|credential|scheme|realm)[a-z]*\b)[\w.~+/=:-]{{8,}}+",
        rf"(?:(?<![\w-])(?<!\.)|{_ESCAPED})eyJ[\w-]{{5,}}+\.[\w-]{{5,}}+(?:\.[\w-]*+){{0,3}}",
        rf"{_BEGIN}(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16}}(?![A-Za-z0-9])",
        rf"{_BEGIN}SG\.[\w-]{{10,}}+\.[\w-]{{10,}}+",
        rf"{_BEGIN}[0-9]{{8,10}}:AA[\w-]{{30,}}+",
        r"(?i)(?P<before>(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks)/)[\w/-]{8,}+",
        bare_login,
    )
    basic = rf"(?i)(?P<before>(?<![A-Za-z])(?:basic|apikey){gap})(?P<value>[\w+/-]{{4,}}+)(?:=|%3D){{0,2}}"
    prefixed = rf"{_BEGIN}(?:{_PREFIXES}|(?P<common>{_COMMON_PREFIXES}))(?P<value>[\w.-]{{12,}}+)"
    return (
        (_login(), _after_name),
        *((re.compile(pattern), _after_name) for pattern in simple),
        (re.compile(basic), _basic),
        (re.compile(prefixed), _prefixed),
        (_assigned(), _next_to_name),
    )


def _after_name(found: re.Match[str]) -> str:
    """Mask everything except the name of the secret."""
    return found.groupdict().get("before", "") + _MASK


def _next_to_name(found: re.Match[str]) -> str:
    """Mask the value next to the name of a secret, unless it is prose."""
    quoted, value = found["quoted"], found["value"]
    if (quoted or value).lower() in _NO_SECRET:
        return found[0]
    if quoted is not None:
        unchanged = _MASKED_HEADER.fullmatch(quoted) or _is_prose(quoted)
        return found[0] if unchanged else f"{found['before']}{found['open']}{_MASK}"
    if found["space"] or found["before"].endswith(":"):
        rest = found.string[found.end() : found.end() + 4]
        ends = not rest.strip() or rest.lstrip(" ")[:1] in (",", ";", "}", "]", ")", "\n", "'", '"')
        if found["token"] or (not ends and len(value) < _ALWAYS and _PLAIN.fullmatch(value.rstrip("."))):
            return found[0]
    return f"{found['before']}{_MASK}" + ("." if value.endswith(".") else "")


def _is_prose(quoted: str) -> bool:
    return quoted.count(" ") >= 2 and all(part.strip(".,:;!?").isalpha() for part in quoted.split())


def _basic(found: re.Match[str]) -> str:
    """Mask Base64 after `Basic` if it decodes to user and password; otherwise `basic` is an ordinary word."""
    return found["before"] + _MASK if b":" in _decoded(found["value"]) else found[0]


def _prefixed(found: re.Match[str]) -> str:
    """Mask a key with a known prefix, but not a name of words with that prefix, such as `sk-learn-estimators`."""
    value = found["value"].rstrip(".")
    dots = found["value"][len(value) :]
    is_key = _is_long_and_mixed if found["common"] else _is_random
    return _MASK + dots if any(map(is_key, re.split("[._-]", value))) else found[0]


def _is_random(part: str) -> bool:
    has_digit = any(character.isdigit() for character in part)
    has_letter = any(character.isalpha() for character in part)
    inner_capital = part[1:] != part[1:].lower() and part != part.upper()
    return len(part) >= 16 or (len(part) >= 8 and has_letter and (has_digit or inner_capital))


def _is_long_and_mixed(part: str) -> bool:
    return len(part) >= 16 and not part.isalpha() and not part.isdigit()


def reason(error: Exception) -> str:
    """The first line of the message of another package's error."""
    if callable(details := getattr(error, "errors", None)):
        # For pydantic's validation errors, list the details: the first line contains only the name of a class.
        text = "; ".join(": ".join([*map(str, detail["loc"][:1]), detail["msg"]]) for detail in details())
        return start_of(text, _MAX_ERROR_LENGTH)
    # Some LangChain messages continue with pages of links.
    first = error_text(error).strip().partition("\n")[0]
    return first or type(error).__name__
