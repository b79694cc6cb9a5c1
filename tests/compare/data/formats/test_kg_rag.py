"""Docugami's CSV files and their PDF files."""

import pytest

from oprag import InputFileError, OptionError
from oprag.compare import read_data
from oprag.compare.data import documents as document_library
from oprag.files.pdf import pdf_pages
from tests.compare.data.writing import compressed, only, refused, write, write_csv
from tests.pdfs import pdf

HEAD = ("Question", "Source Docs", "Question Type", "Source Chunk Type", "Answer")
NAMES = ("2022 Q3 HERON.pdf", "2023 Q1 HERON.pdf", "2023 Q1 SWAN.pdf")
ANSWER = "Ten boats. (SOURCE: 2023 Q1 HERON.pdf)\n\nOf wood.\n\nSOURCE(S): 2023 Q1 HERON.pdf, 2022 Q3 HERON.pdf"


def _pages_once(name, data, extra, known={}):  # noqa: B006
    """The pages of a file; files with the same bytes are read once, since each reading starts a process."""
    if data not in known:
        known[data] = tuple(pdf_pages(name, data, extra))
    return list(known[data])


@pytest.fixture
def docs(tmp_path, monkeypatch):
    monkeypatch.setattr(document_library, "pdf_pages", _pages_once)
    for name in NAMES:
        write(tmp_path / "docs" / name, pdf(f"Report {name[:-4]}.", "Page two."))
    return tmp_path / "docs"


def ask(tmp_path, sources, head=HEAD, **options):
    path = write_csv(tmp_path / "qna_data.csv", head, ("How many boats?", sources, "Multi-Doc RAG", "Table", ANSWER))
    return read_data(path, "kg_rag", **options)


def test_the_layout_of_the_authors(tmp_path, docs):
    data = ask(tmp_path, "*HERON*")
    question = only(data)
    assert (question.id, question.text, question.answers) == ("qna_data-2", "How many boats?", (ANSWER,))
    assert question.documents == NAMES[:2]
    assert question.about == {"question_type": "Multi-Doc RAG", "source_chunk_type": "Table"}
    assert data.documents == {name: [f"Report {name[:-4]}.", "Page two."] for name in NAMES[:2]}


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ("*2023 Q1 SWAN*", (2,)),
        ("2023 Q1 SWAN.pdf", (2,)),
        ("2023 Q1 SWAN", (2,)),
        ("*SWAN*, 2022 Q3 HERON.pdf", (2, 0)),
        ("*HERON*;*2023*", (0, 1, 2)),
        ("*SWAN*\n2022 Q3 HERON", (2, 0)),
        ("", (0, 1, 2)),
        ("*", (0, 1, 2)),
    ],
)
def test_names_patterns_and_lists_of_documents(tmp_path, docs, sources, expected):
    assert only(ask(tmp_path, sources)).documents == tuple(NAMES[number] for number in expected)


@pytest.mark.parametrize("name", ["Heron, Swan; and others.txt", "[draft] a.txt", "a*b.txt"])
def test_names_that_look_like_lists_or_patterns(tmp_path, docs, name):
    write(docs / name, "A note.")
    assert only(ask(tmp_path, name)).documents == (name,)


def test_columns_in_another_order_and_case_and_fewer_of_them(tmp_path, docs):
    path = write_csv(tmp_path / "q.csv", ("ANSWER ", "Notes", " question"), ("Ten.", "n", "How many boats?"))
    question = only(read_data(path, "kg_rag"))
    assert (question.text, question.answers, question.documents, question.about) == (
        "How many boats?",
        ("Ten.",),
        NAMES,
        {"notes": "n"},
    )
    path = write_csv(tmp_path / "q.csv", HEAD[:2], ("How many boats?", "*SWAN*"))
    assert only(read_data(path, "kg_rag")).answers == ()


def test_the_closing_line_of_sources_can_be_taken_off(tmp_path, docs):
    expected = "Ten boats. (SOURCE: 2023 Q1 HERON.pdf)\n\nOf wood."
    assert only(ask(tmp_path, "*SWAN*", source_line=False)).answers == (expected,)
    with pytest.raises(OptionError, match="source_line must be True or False"):
        ask(tmp_path, "*SWAN*", source_line="no")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Ten.\n \n \tSOURCES(S) : a\nSOURCE: b", "Ten."),
        ("Ten.\r\n\r\n\x0bSOURCE\n\n:", "Ten."),
        ("Ten. \nSOURCE a\n", "Ten. \nSOURCE a\n"),
        ("Ten. SOURCE: a", "Ten. SOURCE: a"),
    ],
)
def test_where_the_closing_line_of_sources_begins(tmp_path, docs, answer, expected):
    path = write_csv(tmp_path / "q.csv", ("Question", "Answer"), ("How many?", answer))
    assert only(read_data(path, "kg_rag", source_line=False)).answers == (expected,)


def test_bytes_of_other_systems(tmp_path, docs):
    expected = ask(tmp_path, "*SWAN*").questions
    path = tmp_path / "qna_data.csv"
    for content in (b"\xef\xbb\xbf" + path.read_bytes(), path.read_bytes().replace(b"\n", b"\r\n")):
        assert read_data(write(path, content), "kg_rag").questions == expected
    assert read_data(compressed(path), "kg_rag").questions == expected


def test_lines_are_counted_over_cells_of_several_and_blank_ones(tmp_path, docs):
    content = 'Question,Source Docs\n"One,\ntwo?",*SWAN*\n\n,,\nThree?,*SWAN*\n'.replace(",,\n", ",\n")
    data = read_data(write(tmp_path / "q.csv", content), "kg_rag")
    assert [question.id for question in data.questions] == ["q-2", "q-6"]


def test_a_damaged_pdf_matters_where_it_is_named(tmp_path, docs):
    write(docs / NAMES[0], b"%PDF-1.4\n")
    assert only(ask(tmp_path, "*SWAN*")).documents == NAMES[2:]
    path = write_csv(tmp_path / "q.csv", HEAD[:2], ("One?", "*SWAN*"), ("Two?", "*HERON*"), ("Three?", "2022*"))
    lines = refused(path, "kg_rag").splitlines()
    assert [line.partition(": ")[0] for line in lines] == [f"{path}, line 3", f"{path}, line 4"]
    assert all("is not a PDF file, or is corrupt" in line for line in lines)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            "Question,Source Docs\nHow many?,*GULL*\n",
            "line 2: Source Docs has '*GULL*', which matches no document; available documents: 2",
        ),
        ("Question,Source Docs\nHow many?,*gull*;*SWAN*\n", "line 2: Source Docs has '*gull*'"),
        ("Question,Source Docs\nHow many?,../docs/*SWAN*\n", "which matches no document"),
        ("Question,Source Docs\n,*SWAN*\n", "line 2: question must not be empty"),
        ("Question,Answer\nHow many?,\n", "line 2: answer must not be empty"),
        ("Question,Source Docs\nHow many?\n", "line 2: must have 2 cells, as many as the header, got 1"),
        (
            "Frage,Antwort\nWie viele?,Zehn\n",
            "line 2: question is missing; the fields are frage, antwort",
        ),
        ("Question,question\na,b\n", "line 1: the column 'question' appears 2 times"),
        ('Question,Answer\n"How many?,Ten\nWho?,Ada\n', "line 2: invalid CSV: unexpected end of data"),
        ('Question,Answer\n"How" many?,Ten\nWho?,Ada\n', "line 2: invalid CSV"),
        ("Question\n", "contains no questions"),
        ("", "contains no questions"),
    ],
)
def test_wrong_files(tmp_path, docs, content, words):
    message = refused(write(tmp_path / "q.csv", content), "kg_rag")
    assert words in message
    assert len(message.splitlines()) == 1


def test_an_encoding_that_is_not_utf8_is_told_with_the_line(tmp_path, docs):
    path = write(tmp_path / "q.csv", "Question,Answer\nWho?,Ada\nWo?,Übel\n".encode("latin-1"))
    assert refused(path, "kg_rag").startswith(f"{path}, line 3: is not UTF-8 text")


def test_documents_that_are_elsewhere_or_not_there(tmp_path, docs):
    docs.rename(tmp_path / "reports")
    with pytest.raises(InputFileError, match=r"cannot read the folder .*docs"):
        ask(tmp_path, "*SWAN*")
    assert only(ask(tmp_path, "*SWAN*", documents=tmp_path / "reports")).documents == NAMES[2:]
    with pytest.raises(InputFileError, match="cannot read the folder"):
        ask(tmp_path, "*SWAN*", documents=tmp_path / "reports" / NAMES[0])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputFileError, match="has no files with the extensions"):
        ask(tmp_path, "*SWAN*", documents=tmp_path / "empty")
