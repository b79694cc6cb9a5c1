from fractions import Fraction

import numpy as np
import pytest

from oprag._internal.tokens import count
from oprag.errors import TokenizerError


@pytest.mark.parametrize(
    ("given", "tokens"),
    [(0, 0), (3, 3), (2.0, 2), (2.1, 3), (np.int64(4), 4), (np.float32(0.5), 1), (Fraction(7, 2), 4)],
)
def test_counts_are_rounded_up(given, tokens):
    counted = count("text", lambda text: given)
    assert counted == tokens
    assert type(counted) is int


@pytest.mark.parametrize("given", [None, -1, True, "3", float("nan"), float("inf"), [3], np.array([3, 4])], ids=repr)
def test_anything_else_is_refused(given):
    with pytest.raises(TokenizerError) as caught:
        count("text", lambda text: given)
    assert caught.value.value is given
    assert isinstance(caught.value, TypeError)
