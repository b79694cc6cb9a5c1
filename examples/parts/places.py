"""In which sequence chunks stand in a prompt."""

import re
from collections.abc import Iterable

__all__ = ["as_read"]


def as_read(prompt: str, chunks: Iterable[tuple[int, str]]) -> list[int]:
    """The numbers of the chunks in the sequence of their texts in a prompt; one that is not in it is left out.

    Args:
        prompt: What the model is given.
        chunks: The number and the text of each. The reference says some things twice: equal texts take turns.
    """
    numbers: dict[int, int] = {}
    for number, text in chunks:
        places = (found.start() for found in re.finditer(re.escape(text), prompt))
        place = next((place for place in places if place not in numbers), None)
        if place is not None:
            numbers[place] = number
    return [numbers[place] for place in sorted(numbers)]
