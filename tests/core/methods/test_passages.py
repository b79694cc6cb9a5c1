import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oprag import Chunk, ContextOptions, Span, build_context
from oprag.methods import split_passages
from tests.core.methods.helpers import words
from tests.helpers import cut, prose

WORDS = ContextOptions(count_tokens=words)


def windows(text: str, size: int, step: int) -> list[tuple[int, int]]:
    return [(start, min(start + size, len(text))) for start in range(0, len(text), step)]


@pytest.mark.parametrize(("counter", "most"), [(words, 2), (len, 12)])
def test_a_long_chunk_is_cut_behind_white_space_and_nothing_is_lost(counter, most):
    text = "  one two\nthree\n\nfour five  six "
    context = build_context(cut(text, [(0, len(text))]), ContextOptions(count_tokens=counter))
    found = split_passages(context, most)
    assert "".join(passage.text for passage in found) == text
    assert [passage.text.split() for passage in found] == [["one", "two"], ["three", "four"], ["five", "six"]]
    assert all(text[passage.spans[0].start : passage.spans[0].end] == passage.text for passage in found)


def test_parts_of_a_chunk_on_a_page_keep_the_page():
    chunk = Chunk("one two three", 0, metadata={"source": "b", "page": 3, "start_index": 100})
    found = split_passages(build_context([chunk], WORDS), 1)
    assert [passage.spans for passage in found] == [
        (Span(100, 104, 3),),
        (Span(104, 108, 3),),
        (Span(108, 113, 3),),
    ]


@pytest.mark.parametrize("separator", ["", "\n\n"])
@settings(max_examples=200)
@given(
    seed=st.integers(0, 9),
    size=st.integers(5, 120),
    step=st.integers(5, 120),
    left_out=st.sets(st.integers(0, 30)),
    most=st.integers(1, 40),
    counter=st.sampled_from([words, len]),
)
def test_what_holds_for_any_chunks(separator, seed, size, step, left_out, most, counter):
    text = prose(80, seed)
    spans = [span for number, span in enumerate(windows(text, size, step)) if number not in left_out]
    context_options = ContextOptions(count_tokens=counter, separator=separator)
    context = build_context(cut(text, spans), context_options)
    found = split_passages(context, most)
    assert all(counter(passage.text) <= most for passage in found)
    read = set()
    for passage in found:
        if len(passage.spans) == 1:
            (span,) = passage.spans
            assert text[span.start : span.end] == passage.text
        for span in passage.spans:
            read |= set(range(span.start, span.end))
    wanted = {place for start, end in spans for place in range(start, end) if not text[place].isspace()}
    assert read >= wanted
    # Chunks that overlap are read twice where a border lies between them.
    places = [(passage.chunks[0].rank, passage.spans[0].start) for passage in found]
    assert places == sorted(places)


def test_counting_overlapping_chunks_takes_linear_time():
    text = prose(4_000)

    def work(length: int) -> float:
        counted: list[int] = []

        def counter(text: str) -> int:
            counted.append(len(text))
            return len(text)

        context = build_context(cut(text, windows(text[:length], 200, 20)), ContextOptions(count_tokens=counter))
        counted.clear()
        split_passages(context, length // 2)
        return sum(counted) / length

    assert work(24_000) < 2 * work(3_000)
