"""Retries of model calls: which failures are transient, and how long to wait."""

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

# Seconds of the first and the longest wait. If a server asks for more, the call fails, and a later run can retry it.
_FIRST_WAIT, _MAX_WAIT = 0.5, 60.0

# HTTP statuses: the transient 4xx are timeout, conflict, too early and rate limit; the permanent 5xx are not
# implemented and unsupported HTTP version.
_TRANSIENT = {408, 409, 425, 429}
_PERMANENT = {501, 505}
# Providers also use the status of a rate limit if the quota or the credit is used up, which is permanent.
_UNPAID = re.compile(r"insufficient_quota|billing", re.IGNORECASE)
# Clients share no exception classes, but use similar names.
_NAMES = re.compile(
    r"Timeout|TimedOut|RateLimit|TooManyRequests|Throttl|Overloaded|ServiceUnavailable|InternalServer|ResourceExhausted"
    r"|DeadlineExceeded|Connection|ConnectError|NetworkError|TransportError|ProtocolError|ReadError|WriteError"
    r"|IncompleteRead"
)


def with_retries(ask: Callable[[], Completion], retries: int, wait: Callable[[float], bool]) -> Completion:
    """Call a model and retry transient failures; returns the first completion without an error, or else the last.

    `wait` waits for a number of seconds and returns True to end the retries, such as `Event.wait` of a stop event.
    """
    for done in range(retries):
        completion = ask()
        seconds = None if completion.error is None else _pause(completion.error, done)
        if seconds is None or wait(seconds):
            return completion
    return ask()


def _pause(error: Exception, done: int) -> float | None:
    """Seconds to wait before the next attempt; None if the call should not be retried."""
    if not _is_transient(error):
        return None
    requested = _retry_after(error)
    if requested is not None:
        return requested if requested <= _MAX_WAIT else None
    # Jitter, so that calls that failed together are not retried together.
    return float(min(_MAX_WAIT, _FIRST_WAIT * 2**done) * random.uniform(0.5, 1))


def _is_transient(error: BaseException) -> bool:
    """Whether a retry may succeed: rate limits, timeouts, connection errors and server errors."""
    for one in _with_causes(error):
        status = _status(one)
        if status is not None:
            if status == 429 and _UNPAID.search(str(one)):
                return False
            return status in _TRANSIENT or (status >= 500 and status not in _PERMANENT)
        if isinstance(one, TimeoutError | ConnectionError):
            return True
        if any(_NAMES.search(kind.__name__) for kind in type(one).__mro__):
            return True
    return False


def _retry_after(error: BaseException) -> float | None:
    """The seconds that the server asks to wait; None if not specified."""
    for one in _with_causes(error):
        # urllib's HTTPError is the response itself.
        headers = getattr(getattr(one, "response", one), "headers", None)
        if not callable(get := getattr(headers, "get", None)):
            continue
        # Seconds or a date (RFC 9110, section 10.2.3); some servers also send milliseconds.
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
    # 0 for a date in the past, and for NaN.
    return seconds if seconds > 0 else 0.0


def _status(error: BaseException) -> int | None:
    """The HTTP status of an error; each client stores it in a different attribute."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        # Amazon's botocore.
        places = [response.get("ResponseMetadata", {}).get("HTTPStatusCode")]
    else:
        names = ("status_code", "status", "code")
        places = [getattr(holder, name, None) for holder in (error, response) for name in names]
    return next((place for place in places if type(place) is int and 100 <= place < 600), None)


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes, since some packages wrap the errors of their clients."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        reason = getattr(one, "reason", None)
        # urllib's URLError stores the cause as `reason`.
        one = one.__cause__ or (reason if isinstance(reason, BaseException) else None)
