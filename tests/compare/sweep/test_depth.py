import pytest

from oprag.compare.providers.names import tokenizer_of
from oprag.compare.sweep.depth import candidates
from oprag.index.splitting import Split, pieces_of
from oprag.tokens import approximate_tokens

PROSE = "The harbour of Aldmere has nine cranes, and its lamp burns by night until the last ship is in. " * 900
NUMBERS = "\n".join(" ".join(f"{row * column % 977 / 10:.1f}" for column in range(12)) for row in range(2_000))
RAGGED = "\n\n".join("So it is. " * (1 + row * 7 % 40) for row in range(900))


def lengths(document, split):
    tokenizer = tokenizer_of("local").tokenizer
    return [approximate_tokens(window.text) for window, _ in pieces_of({"a": document}, tokenizer, split)]


@pytest.mark.parametrize("document", [PROSE, NUMBERS, RAGGED])
@pytest.mark.parametrize("split", [Split(), Split("words", 40), Split("recursive", 100), Split("recursive")])
def test_the_shorter_half_of_the_chunks_fills_the_budget(document, split):
    budget = 8_192
    found = sorted(lengths(document, split))
    shorter = found[: len(found) // 2]
    k = candidates({"a": document}, split, approximate_tokens, budget)
    assert k * sum(shorter) / len(shorter) > 1.2 * budget
    # And hardly more than that: each candidate takes time.
    assert k * sum(shorter) / len(shorter) < 1.9 * budget


def test_a_long_document_is_sampled_all_over():
    # Prose in front, where a title page would be all there is to see of it.
    long = {"a": PROSE * 5 + NUMBERS * 8}
    k = candidates(long, Split(), approximate_tokens, 8_192)
    assert k > 1.4 * candidates({"a": PROSE}, Split(), approximate_tokens, 8_192)
    assert k == candidates(long, Split(), approximate_tokens, 8_192)


def test_short_documents_are_chunks_of_their_own():
    notes = {str(number): "Nine cranes." for number in range(200)}
    assert candidates(notes, Split(), approximate_tokens, 300) == 150


def test_pages_and_nothing_at_all():
    assert candidates({"a": [PROSE, PROSE]}, Split(), approximate_tokens, 1) == 1
    assert candidates({"a": ""}, Split(), approximate_tokens, 10) == 15
