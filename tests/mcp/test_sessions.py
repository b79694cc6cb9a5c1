from concurrent.futures import ThreadPoolExecutor

from oprag import Chunk, ContextOptions
from oprag.mcp.server import Session, Sessions
from tests.helpers import hit


def add(session, number):
    text, chunks = session.add([hit(f"Part {number}.", 0, start_index=10 * number)], "", show_again=False)
    return text, list(chunks)


def test_a_session_has_its_own_numbers_and_is_found_again():
    sessions = Sessions(ContextOptions())
    assert add(sessions.of("a"), 7)[1] == [1]
    assert add(sessions.of("a"), 8)[1] == [2]
    assert add(sessions.of("b"), 8)[1] == [1]
    assert add(sessions.of(None), 9)[1] == [1]
    assert add(sessions.of(None), 8)[1] == [1]
    assert sessions.of("a") is sessions.of("a")


def test_the_least_recently_used_session_is_dropped():
    sessions = Sessions(ContextOptions())
    first = sessions.of("0")
    for number in range(1, 100):
        add(sessions.of(str(number)), 7)
    assert sessions.of("0") is first
    sessions.of("100")
    assert sessions.of("0") is first
    assert sessions.of("1").working is None


def test_a_session_without_end_is_numbered_anew_and_says_so():
    session = Session(ContextOptions())
    texts = [add(session, number % 600)[0] for number in range(1_100)]
    renewed = [place for place, text in enumerate(texts) if "no longer valid" in text]
    assert renewed == [500, 1_000]
    assert texts[500].startswith("[1] ")
    assert session.working is not None
    assert len(session.working) <= 500


def test_threads_share_a_session():
    session = Session(ContextOptions())
    with ThreadPoolExecutor(8) as threads:
        numbers = [number for _, (number,) in threads.map(lambda place: add(session, place), range(200))]
    assert sorted(numbers) == list(range(1, 201))


def test_what_a_chunk_says_is_no_number():
    session = Session(ContextOptions())
    text, _ = session.add([Chunk("See [7].", 0, "book")], "", show_again=False)
    assert "[7]" not in text
    assert "[ 7 ]" in text
