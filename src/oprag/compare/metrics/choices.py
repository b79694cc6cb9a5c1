"""Multiple-choice accuracy by the rule of ∞Bench."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oprag.compare.metrics.answers import check_answers
from oprag.options import check_text

__all__ = ["REVISION", "choice_accuracy"]

REVISION = "88b3daa6"
"""Latest commit of the official function; its rule has not changed since March 2024."""

_LETTERS = "ABCD"
_BLANKED = str.maketrans(dict.fromkeys("\n\"'.,?!{}", " "))
_SPACES = re.compile(" {2,}")
_PHRASES = ("answer is:", "answer:", "answer is", "option is")


def choice_accuracy(prediction: str, labels: Sequence[str]) -> float:
    """1 if the prediction chooses the right option among A to D, else 0.

    The rule is `get_score_one_longbook_choice_eng` in `src/compute_scores.py` of ∞Bench (github OpenBMB/InfiniteBench)
    at commit 88b3daa6:

    1. If the prediction starts with A, B, C or D, this character is compared with the labels.
    2. Otherwise, a prediction that equals a label is right.
    3. Otherwise, line breaks and the characters `"'.,?!{}` are replaced by spaces, and the first of "answer is:",
       "answer:", "answer is" and "option is" that the text contains is decisive: the prediction is right if a label
       follows one character after it.
    4. Otherwise, the first word that is a substring of "ABCD" is compared with the labels.
    5. Otherwise, the prediction is wrong.

    Its quirks are kept, so that scores are comparable with published ones:

    - Step 1 reads "Because he fled" as B and "Don't know" as D. Lower-case letters are never recognized.
    - White space around the prediction is stripped first.
    - The text of the right option alone is right, unless it starts with another letter from A to D.
    - The phrases of step 3 are tried in this order, not in text order, and only in lower case. Once one is found, only
      the text after it counts: "the answer is option B" is wrong.
    - The character after the phrase is skipped: "answer:B" is wrong. The text after it only has to start with a label:
      "answer is: Cats" is right for C.
    - Labels keep their punctuation, but the prediction loses it: in step 3, an option such as "12 o'clock" never
      matches.
    - Step 4 only recognizes separate letters: "(B)", "*B*" and "B)" after another word are not found.
    - In step 4, "AB", "BC", "CD", "ABC", "BCD" and "ABCD" also count as letters and are wrong, and so does the article
      "A" after another word ("It is A man" is read as A).

    Args:
        prediction: Answer of the model; may be empty.
        labels: Text and letter of the right option (`Question.labels`).

    Returns:
        0 or 1.

    Raises:
        OptionError: `prediction` is not a string, or `labels` is not a sequence of at least one string.

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
