"""Token usage as the paper defines it, and the share of the long context."""

import pytest

from oprag import OptionError
from oprag.compare.metrics import long_context_share, paper_token_usage


def test_the_formula_of_the_paper_in_both_units():
    assert paper_token_usage("one two\n three") == 4
    assert paper_token_usage("abcdef", "characters") == 8
    assert paper_token_usage("") == paper_token_usage("", unit="characters") == paper_token_usage(" \n") == 0
    assert paper_token_usage("é\ud800 x", "characters") == pytest.approx(16 / 3)


def test_what_has_no_length_is_refused():
    with pytest.raises(OptionError, match="response must be a string, got 12"):
        paper_token_usage(12)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="unit must be one of words, characters, got 'tokens'"):
        paper_token_usage("text", "tokens")  # type: ignore[arg-type]


def test_the_share_of_the_long_context():
    assert long_context_share(25, 100) == 0.25
    assert long_context_share(0, 100) == 0
    assert long_context_share(125, 100) == 1.25
    assert long_context_share(0, 0) is None


@pytest.mark.parametrize(("read", "whole"), [(-1, 5), (5, -1), (1.5, 5), (5, None), (True, 5)])
def test_counts_are_whole_numbers(read, whole):
    with pytest.raises(OptionError, match=r"tokens_(read|of_sources) must be a whole number from 0, got"):
        long_context_share(read, whole)
