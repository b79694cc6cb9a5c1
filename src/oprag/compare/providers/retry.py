"""Asking a model again where its failure may pass: which failures do, and how long to wait."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from oprag.methods.model_calls import Completion

__all__ = ["RETRIES", "with_retries"]

RETRIES = 2
"""Default number of retries of a failed call."""

# Seconds: what is waited first, and the most. Where a server wants more, a later start of the run asks again.
_FIRST, _LONGEST = 0.5, 60.0

# Timeouts, locks and "too early" are the client errors that pass; 501 says that it never will.
_PASSING = {408, 409, 425, 429}
_LASTING = {501, 505}
# What providers say with the status of a rate limit where somebody has to pay first.
_UNPAID = re.compile(r"insufficient_quota|billing", re.IGNORECASE)
# Clients have no class in common, but say the same in their names.
_NAMES = re.compile(
    r"Timeout|TimedOut|RateLimit|TooManyRequests|Throttl|Overloaded|ServiceUnavailable|InternalServer|ResourceExhausted"
    r"|DeadlineExceeded|Connection|ConnectError|NetworkError|TransportError|ProtocolError|ReadError|WriteError"
    r"|IncompleteRead"
)


def with_retries(ask: Callable[[], Completion], retries: int, wait: Callable[[float], bool]) -> Completion:
    """The first completion that has no error, or the last one; calls again while the failure may pass.

    `wait` waits for some seconds; its True ends the retries, as that of an event that is set to stop a run.
    """
    for done in range(retries):
        completion = ask()
        seconds = None if completion.error is None else _pause(completion.error, done)
        if seconds is None or wait(seconds):
            return completion
    return ask()


def _pause(error: Exception, done: int) -> float | None:
    """Seconds to wait for the next try; None where there should be none."""
    if not _may_pass(error):
        return None
    asked = _retry_after(error)
    if asked is not None:
        return asked if asked <= _LONGEST else None
    # So that those who failed together do not come back together.
    return float(min(_LONGEST, _FIRST * 2**done) * random.uniform(0.5, 1))


def _may_pass(error: BaseException) -> bool:
    """Whether the same call may succeed later: rate limits, timeouts, broken connections, faults of a server."""
    for one in _with_causes(error):
        status = _status(one)
        if status is not None:
            if status == 429 and _UNPAID.search(str(one)):
                return False
            return status in _PASSING or (status >= 500 and status not in _LASTING)
        if isinstance(one, TimeoutError | ConnectionError):
            return True
        if any(_NAMES.search(kind.__name__) for kind in type(one).__mro__):
            return True
    return False


def _retry_after(error: BaseException) -> float | None:
    """The seconds that a server asks to wait, None where it names none."""
    for one in _with_causes(error):
        # The error of Python's own client is the response itself.
        headers = getattr(getattr(one, "response", one), "headers", None)
        if not callable(get := getattr(headers, "get", None)):
            continue
        # Seconds or a date (RFC 9110, section 10.2.3); some servers give milliseconds beside.
        for name, unit in (("retry-after-ms", 1_000), ("retry-after", 1)):
            if (seconds := _seconds(get(name))) is not None:
                return seconds / unit
    return None


def _seconds(value: Any) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(str(value)) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return None
    # A date that has passed, or NaN.
    return seconds if seconds > 0 else 0.0


def _status(error: BaseException) -> int | None:
    """The status of HTTP that an error carries; each client has it in a place of its own."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        # Of Amazon's client.
        places = [response.get("ResponseMetadata", {}).get("HTTPStatusCode")]
    else:
        names = ("status_code", "status", "code")
        places = [getattr(holder, name, None) for holder in (error, response) for name in names]
    return next((place for place in places if type(place) is int and 100 <= place < 600), None)


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and what it was raised from: some packages wrap those of their clients."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        reason = getattr(one, "reason", None)
        # Python's own client gives the cause another name.
        one = one.__cause__ or (reason if isinstance(reason, BaseException) else None)
