"""What an error says, on one line and without secrets.

Errors become text here, and the results file and the command line mask once more what they write or print.
"""

from __future__ import annotations

from oprag.compare.storable import storable
from oprag.masking import error_text

__all__ = ["message_of", "named_message"]


def message_of(error: BaseException | str | None, most: int | None = None) -> str:
    """What an error says: on one line, as a file can hold it, and without secrets.

    Args:
        error: The error, or what it says.
        most: The most characters.
    """
    return " ".join(storable(error_text(error)).split())[:most]


def named_message(error: BaseException | None, most: int | None = None) -> str:
    """The class of an error and what it says, as `message_of` has it."""
    return f"{type(error).__name__}: {message_of(error, most)}"
