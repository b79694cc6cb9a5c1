"""Accuracy of multiple choice, judged as ∞Bench judges it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oprag.compare.metrics.answers import check_answers
from oprag.options import check_text

__all__ = ["REVISION", "choice_accuracy"]

REVISION = "88b3daa6"
"""The commit of the official function, the newest, whose rule is that of March 2024."""

_LETTERS = "ABCD"
_BLANKED = str.maketrans(dict.fromkeys("\n\"'.,?!{}", " "))
_SPACES = re.compile(" {2,}")
_PHRASES = ("answer is:", "answer:", "answer is", "option is")


def choice_accuracy(prediction: str, labels: Sequence[str]) -> float:
    """1 if the prediction names the right option of A to D, else 0.

    The rule is `get_score_one_longbook_choice_eng` in `src/compute_scores.py` of ∞Bench (github OpenBMB/InfiniteBench)
    at commit 88b3daa6:

    1. A prediction that begins with A, B, C or D is judged by that character.
    2. Else one that equals a label is right.
    3. Else line breaks and the characters `"'.,?!{}` become spaces, and the first of "answer is:", "answer:",
       "answer is" and "option is" that the text has decides: right where a label follows, one character after it.
    4. Else the first word that is a part of "ABCD" decides.
    5. Else it is wrong.

    Its quirks are kept, for scores that can be compared with published ones:

    - Step 1 reads "Because he fled" as B and "Don't know" as D. Lower-case letters are never read.
    - White space around the prediction is stripped first.
    - The text of the right option alone is right, unless it begins with another letter of A to D.
    - The phrases of step 3 are searched in that sequence, not in that of the text, and with their small letters;
      once one is found, only the words after it count: "the answer is option B" is wrong.
    - The character after the phrase is skipped unread: "answer:B" is wrong. What follows need only start with a label:
      "answer is: Cats" is right for C.
    - Labels keep their punctuation, the prediction does not: in step 3 an option such as "12 o'clock" never matches.
    - Step 4 reads a letter that stands alone: "(B)", "*B*" and "B)" after another word are not found.
    - In step 4 "AB", "BC", "CD", "ABC", "BCD" and "ABCD" are such words too, and wrong; so is the article in "A man"
      after another word ("It is A man" is A).

    Args:
        prediction: The answer of the model; may be empty.
        labels: The text and the letter of the right option (`Question.labels`).

    Returns:
        0 or 1.

    Raises:
        OptionError: The prediction is not a string, or the labels are not a sequence of at least one string.

    Example:
        >>> choice_accuracy("The correct answer is: B. Mill Lane", ["Mill Lane", "B"])
        1.0
    """
    check_text("prediction", prediction)
    check_answers("labels", labels)
    prediction = prediction.strip()
    if not prediction:
        return 0.0
    if prediction[0] in _LETTERS:
        return float(prediction[0] in labels)
    if prediction in labels:
        return 1.0
    text = _SPACES.sub(" ", prediction.translate(_BLANKED))
    for phrase in _PHRASES:
        _, found, after = text.partition(phrase)
        if found:
            return float(after != "" and after[1:].startswith(tuple(labels)))
    return float(next((word in labels for word in text.split() if word in _LETTERS), False))
