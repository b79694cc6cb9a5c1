"""QMSum's meetings."""

import json

import pytest

from oprag import InputFileError, OptionError
from oprag.compare import read_data
from tests.compare.data.writing import compressed, evidence_texts, refused, write, write_lines

TURNS = [
    ("Chair", "We begin ."),
    ("Ada", "The lamp is out ."),
    ("Ben", ""),
    ("Ada", "So buy one ."),
    ("Chair", "Done ."),
]


def specific(query="What of the lamp?", spans=(("1", "3"),), **fields):
    return {"query": query, "answer": "It is out.", "relevant_text_span": [list(span) for span in spans], **fields}


def meeting(*queries, general=(), turns=TURNS, **fields):
    return {
        "topic_list": [{"topic": "Lamps", "relevant_text_span": [["1", "3"]]}],
        "general_query_list": list(general),
        "specific_query_list": list(queries),
        "meeting_transcripts": [{"speaker": speaker, "content": content} for speaker, content in turns],
        **fields,
    }


GENERAL = {"query": "Summarize the meeting.", "answer": "A lamp was bought."}
TEXT = "Chair: We begin .\nAda: The lamp is out .\nBen: \nAda: So buy one .\nChair: Done ."


def test_turns_become_lines_and_spans_of_turns_characters(tmp_path):
    record = meeting(specific(), specific(spans=[("0", "0"), (4, 4)]), general=[GENERAL])
    data = read_data(write(tmp_path / "val" / "Bed007.json", json.dumps(record, indent=2)), "qmsum")
    assert data.documents == {"Bed007": TEXT}
    general, first, second = data.questions
    assert (general.id, general.text, general.answers) == (
        "Bed007-general-1",
        "Summarize the meeting.",
        ("A lamp was bought.",),
    )
    assert (general.evidence, general.about) == ((), {"kind": "general", "split": "val"})
    assert (first.id, first.about) == ("Bed007-specific-1", {"kind": "specific", "split": "val"})
    assert evidence_texts(data, first) == ["Ada: The lamp is out .\nBen: \nAda: So buy one ."]
    assert evidence_texts(data, second) == ["Chair: We begin .", "Chair: Done ."]


def test_lines_and_folders_of_files(tmp_path):
    other = [("Cy", "Hello .")]
    lines = write_lines(tmp_path / "test.jsonl", meeting(specific()), meeting(specific(spans=[]), turns=other))
    data = read_data(lines, "qmsum")
    assert data.documents == {"test-1": TEXT, "test-2": "Cy: Hello ."}
    assert [question.id for question in data.questions] == ["test-1-specific-1", "test-2-specific-1"]
    assert data.questions[1].about["split"] == "test"
    folder = tmp_path / "all"
    write(folder / "b.json", json.dumps(meeting(specific())))
    compressed(write(folder / "a.json", json.dumps(meeting(specific(spans=[]), turns=other))))
    write_lines(folder / "more" / "c.jsonl", meeting(specific()))
    data = read_data(folder, "qmsum")
    assert list(data.documents) == ["a", "b", "c-1"]
    assert "split" not in data.questions[0].about
    write(folder / "notes.txt", "x")
    with pytest.raises(InputFileError, match=r"unexpected file notes\.txt"):
        read_data(folder, "qmsum")


def test_a_line_break_in_a_turn_begins_no_line(tmp_path):
    turns = [("Ada", "One .\nTwo ."), ("Ben", "Three .")]
    data = read_data(write_lines(tmp_path / "a.jsonl", meeting(specific(spans=[(1, 1)]), turns=turns)), "qmsum")
    assert data.documents["a-1"] == "Ada: One . Two .\nBen: Three ."
    assert evidence_texts(data, data.questions[0]) == ["Ben: Three ."]


def test_queries_of_one_kind_keep_their_ids(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", meeting(specific(), specific("Who?"), general=[GENERAL]))
    every = {question.id: question for question in read_data(path, "qmsum").questions}
    for kind, count in (("general", 1), ("specific", 2)):
        questions = read_data(path, "qmsum", queries=kind).questions
        assert len(questions) == count
        assert all(every[question.id] == question for question in questions)
    with pytest.raises(OptionError, match="queries must be one of all, general, specific"):
        read_data(path, "qmsum", queries="topics")


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (
            meeting(specific(spans=[("1", "5")])),
            "relevant_text_span[0] must be the first and last turn in ascending order, from 0 to 4",
        ),
        (meeting(specific(spans=[("3", "1")])), "in ascending order, from 0 to 4, got 3 to 1"),
        (
            meeting(specific(spans=[("1", "2"), ("-1", "2")])),
            "[1][0] must be greater than or equal to 0",
        ),
        (
            meeting(specific(spans=[("1", "²")])),
            "must be a valid integer, unable to parse string",
        ),
        (meeting(specific(spans=[("1", 2.5)])), "must be a valid integer, got a number with a fractional part"),
        (meeting(specific(spans=[("1",)])), "must contain at least 2, got ['1']"),
        (meeting(specific(relevant_text_span=None)), "relevant_text_span must be a list, got None"),
        (meeting(specific(answer=None)), "specific query 1: answer must be a string, got None"),
        (meeting(specific(), specific("")), "specific query 2: query must not be empty"),
        (meeting(3), "specific query 1: must be a mapping, got 3"),
        (meeting(general=[{"query": "What?"}]), "general query 1: answer is missing"),
        (meeting(specific_query_list=None), "specific_query_list must be a list, got None"),
        (meeting(meeting_transcripts="Hello"), "meeting_transcripts must be a list, got 'Hello'"),
        (meeting(meeting_transcripts=[]), "the text of the document 'a-2' must not be empty"),
        (meeting(meeting_transcripts=["Hello"]), "meeting_transcripts[0] must be a mapping"),
        (meeting(meeting_transcripts=[{"speaker": "Ada"}]), "[0].content is missing"),
        (meeting(meeting_transcripts=[{"speaker": "Ada", "content": None}]), "[0].content must be a string, got None"),
        (meeting(meeting_transcripts=[{"speaker": "", "content": "Hello"}]), "speaker must not be empty"),
    ],
)
def test_wrong_meetings(tmp_path, record, words):
    path = write_lines(tmp_path / "a.jsonl", meeting(specific()), record)
    message = refused(path, "qmsum")
    assert message.startswith(f"{path}, line 2")
    assert words in message
