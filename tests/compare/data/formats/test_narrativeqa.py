"""The folder of NarrativeQA."""

import pytest

from oprag import InputFileError, OptionError
from oprag.compare import read_data
from tests.compare.data.writing import compressed, refused, write, write_csv

LISTED = ("document_id", "set", "kind", "story_url", "story_file_size", "wiki_url", "wiki_title", "story_word_count")
ASKED = ("document_id", "set", "question", "answer1", "answer2", "question_tokenized", "answer1_tokenized")


def listed(name, part="test", kind="gutenberg", title="A Title, or Two"):
    return (name, part, kind, "http://example.org", "10", "http://example.org", title, "3")


def asked(name, part="test", question="Who sings?", first="Ada", second="It is Ada"):
    return (name, part, question, first, second, "who sings ?", "ada")


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "narrativeqa"
    write_csv(root / "documents.csv", LISTED, listed("aa"), listed("bb", "valid", "movie", ""), listed("cc", "train"))
    rows = [asked("aa"), asked("bb", "valid", 'He said: "Who,\nif any?"'), asked("aa", first="Ben", second="Ben")]
    write_csv(root / "qaps.csv", ASKED, *rows)
    write(root / "tmp" / "aa.content", "Ada sings.\r\nBen listens.\r\n")
    write(
        root / "tmp" / "bb.content",
        "<html><head><title>x</title></head><body><pre>INT. HOUSE\n\n  ADA\n</pre></body></html>",
    )
    return root


def test_stories(folder):
    data = read_data(folder, "narrativeqa")
    assert data.name == "narrativeqa"
    assert data.documents == {"aa": "Ada sings.\r\nBen listens.\r\n", "bb": "INT. HOUSE\n\n  ADA"}
    first, second, third = data.questions
    assert [question.id for question in data.questions] == ["qaps-2", "qaps-3", "qaps-5"]
    assert (first.documents, first.answers) == (("aa",), ("Ada", "It is Ada"))
    assert first.about == {"split": "test", "kind": "gutenberg", "title": "A Title, or Two"}
    assert (second.text, second.about) == ('He said: "Who,\nif any?"', {"split": "valid", "kind": "movie"})
    assert third.answers == ("Ben",)


def test_a_split_needs_its_own_stories_alone(folder):
    (folder / "tmp" / "bb.content").unlink()
    data = read_data(folder, "narrativeqa", split="test")
    assert list(data.documents) == ["aa"]
    assert [question.id for question in data.questions] == ["qaps-2", "qaps-5"]
    message = refused(folder, "narrativeqa")
    assert message.startswith(f"{folder / 'qaps.csv'}, line 3: the file 'bb.content' is missing in the folder")
    assert "skip this one with `exclude`" in message
    assert read_data(folder, "narrativeqa", exclude=["bb"]).questions == data.questions


def test_stories_in_another_folder_compressed_or_not(folder, tmp_path):
    (folder / "tmp").rename(tmp_path / "stories")
    for name in ("documents.csv", "qaps.csv"):
        compressed(folder / name)
    compressed(tmp_path / "stories" / "aa.content")
    assert len(read_data(folder, "narrativeqa", documents=tmp_path / "stories").questions) == 3


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_stories_are_utf8_or_latin1(folder, encoding):
    write(folder / "tmp" / "aa.content", "Adá sings.".encode(encoding))
    assert read_data(folder, "narrativeqa").documents["aa"] == "Adá sings."


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"split": "dev"}, "split must be one of train, valid, test, or None"),
        ({"exclude": "zz"}, "exclude must be a list of document ids"),
        ({"exclude": [1]}, "exclude must be a list of document ids"),
        ({"exclude": 1}, "exclude must be a list of document ids"),
        ({"exclude": ["zz"]}, r"exclude must be a list of document ids in documents\.csv, got 'zz'"),
    ],
)
def test_wrong_options(folder, options, words):
    with pytest.raises(OptionError, match=words):
        read_data(folder, "narrativeqa", **options)


def test_a_file_of_the_folder_is_missing(folder):
    with pytest.raises(InputFileError, match=r"documents\.csv is missing in the folder"):
        read_data(folder / "qaps.csv", "narrativeqa")
    (folder / "documents.csv").unlink()
    with pytest.raises(InputFileError, match=r"documents\.csv is missing in the folder"):
        read_data(folder, "narrativeqa")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (asked("dd"), "document 'dd' not found in"),
        (asked("aa", part="dev"), "set must be 'train', 'valid' or 'test', got 'dev'"),
        (asked("aa", question=" "), "question must not be empty"),
        (asked("aa", second=""), "answer2 must not be empty"),
        (asked("aa")[:5], "must have 7 cells, as many as the header, got 5"),
        ((*asked("aa"), "more"), "must have 7 cells, as many as the header, got 8"),
    ],
)
def test_wrong_rows(folder, row, words):
    path = write_csv(folder / "qaps.csv", ASKED, asked("aa"), row)
    message = refused(folder, "narrativeqa")
    assert message.startswith(f"{path}, line 3: ")
    assert words in message


def test_ids_cannot_lead_out_of_the_folder_of_stories(folder, tmp_path):
    write(tmp_path / "secret.content", "The key.")
    name = "../../secret"
    write_csv(folder / "documents.csv", LISTED, listed(name))
    write_csv(folder / "qaps.csv", ASKED, asked(name))
    assert "is outside the folder" in refused(folder, "narrativeqa")
