"""QuALITY's JSON lines."""

import pytest

from oprag.compare import read_data
from tests.compare.data.writing import compressed, refused, write_lines

HTML = "<p>\n The pie stood\n on the &amp; sill. </p><p>Two cats<br/>came.</p>"
PLAIN = "The pie stood\n on the & sill.\nTwo cats\ncame."


def question(**fields):
    return {
        "question": "What stood there?",
        "options": ["A cat. ", "A pie.", "A sill.", "A tree."],
        "gold_label": 2,
        "writer_label": 2,
        "validation": [{"untimed_answer": 2}],
        "speed_validation": [{"speed_answer": 1}],
        "difficult": 1,
        **fields,
    }


def line(*questions, **fields):
    return {
        "article_id": "20001",
        "set_unique_id": "20001_WRITER1",
        "batch_num": "11",
        "writer_id": "1",
        "source": "Shelf",
        "title": "The Pie",
        "author": "A. Baker",
        "topic": "Pies",
        "url": "http://example.org/pie",
        "year": "1956",
        "license": "None",
        "article": HTML,
        "questions": list(questions),
        **fields,
    }


def test_an_article_of_two_writers(tmp_path):
    path = write_lines(
        tmp_path / "QuALITY.v1.0.1.dev",
        line(question(), question(question="Who came?", gold_label=1, difficult=0)),
        line(question(question="What came?"), set_unique_id="20001_WRITER2"),
    )
    for where in (path, compressed(path)):
        if not where.exists():
            continue
        data = read_data(where, "quality")
        assert data.documents == {"20001": PLAIN}
        assert [one.id for one in data.questions] == ["20001_WRITER1_1", "20001_WRITER1_2", "20001_WRITER2_1"]
        assert [one.labels for one in data.questions] == [("A pie.", "B"), ("A cat. ", "A"), ("A pie.", "B")]
        assert data.questions[0].answers == ("A pie.",)
        assert data.questions[1].about == {
            "title": "The Pie",
            "author": "A. Baker",
            "topic": "Pies",
            "source": "Shelf",
            "year": "1956",
            "split": "dev",
            "difficult": 0,
        }


def test_stripped_articles(tmp_path):
    path = write_lines(
        tmp_path / "QuALITY.htmlstripped.train", line(question(), article="If a < b\n\n\n\n  then & so.\n")
    )
    assert read_data(path, "quality").documents == {"20001": "If a < b\n\n\n\n  then & so.\n"}


def test_the_test_set_has_no_right_choices(tmp_path):
    hidden = {"question": "What?", "question_unique_id": "20001_X_7", "options": ["a", "b", "c", "d"]}
    data = read_data(write_lines(tmp_path / "QuALITY.v1.0.1.test", line(hidden)), "quality")
    (one,) = data.questions
    assert (one.id, one.right_choice, one.answers, one.labels) == ("20001_X_7", None, (), None)
    assert one.about["split"] == "test"


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (line(question(gold_label=0)), "question 1: gold_label must be an integer >= 1, got 0"),
        (
            line(question(), question(gold_label=5)),
            "question 2: right_choice is 4, but must be an index into its 4 choices, counted from 0",
        ),
        (line(question(gold_label="2")), "got '2'"),
        (line(question(gold_label=True)), "got True"),
        (line(question(options=["a", None])), "options[1] must be a string, got None"),
        (line(question(options=[])), "options must contain at least 2"),
        (line(question(question="")), "question must not be empty"),
        (line(7), "question 1: must be a mapping, got 7"),
        (line(question(), questions={}), "questions must be a list, got a mapping"),
        (line(question(), article=""), "article must not be empty"),
        (line(question(), article="<p> </p>"), "the text of the document '20002' must not be empty"),
        (
            line(question(), article="Other.", article_id="20001"),
            "another document '20001' already exists with a different",
        ),
        (line(question(), set_unique_id="20001_WRITER1"), "the id '20001_WRITER1_1' is used twice"),
    ],
)
def test_wrong_lines(tmp_path, record, words):
    other = {"article_id": "20002", "set_unique_id": "20002_W"}
    if "20001" not in words:
        record = {**record, **other}
    path = write_lines(tmp_path / "q.dev", line(question()), record)
    message = refused(path, "quality")
    assert message.startswith(f"{path}, line 2")
    assert words in message


def test_wrong_questions_of_one_article_are_told_one_by_one(tmp_path):
    path = write_lines(tmp_path / "q.dev", line(question(gold_label=9), question(), question(question=3)))
    assert [one.partition(": ")[0] for one in refused(path, "quality").splitlines()] == [
        f"{path}, line 1, question 1",
        f"{path}, line 1, question 3",
    ]
