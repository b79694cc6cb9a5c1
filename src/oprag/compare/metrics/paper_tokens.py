"""Token usage as Şakar and Emekci define it."""

from __future__ import annotations

from typing import Literal

from oprag.options import check_choice, check_text

__all__ = ["LengthUnit", "paper_token_usage"]

LengthUnit = Literal["words", "characters"]


def paper_token_usage(response: str, unit: LengthUnit = "words") -> float:
    """The tokens of a response by the formula of the paper: T = LR × 4 / 3, LR being the length of the response.

    From Şakar and Emekci 2024 (doi 10.1017/nlp.2024.53), to stand beside its figures. **The paper does not say in what
    LR is measured.** Words are the default, since 4 tokens for 3 words is the usual rule of thumb for English text; in
    characters the same formula gives about six times as much, far more than any tokenizer counts. The formula
    sees neither the prompt nor the calls before the last one: for what was really spent, use the counted tokens.

    Args:
        response: What the model answered.
        unit: What LR counts: words (split at white space) or characters (code points).

    Returns:
        Tokens, from 0; not a whole number in general.

    Raises:
        OptionError: The response is no string, or the unit is neither of the two.

    Example:
        >>> paper_token_usage("Because the bear ate honey.")
        6.666666666666667
    """
    check_text("response", response)
    check_choice("unit", unit, ("words", "characters"))
    return (len(response.split()) if unit == "words" else len(response)) * 4 / 3
