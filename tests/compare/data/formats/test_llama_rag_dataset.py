"""LlamaIndex's rag_dataset.json."""

import json
import random
import re

import pytest

from oprag import InputFileError, OptionError
from oprag.compare import read_data
from tests.compare.data.writing import compressed, evidence_texts, refused, write
from tests.pdfs import pdf

FILES = {"a.txt": "Ada lit the lamp. The lamp burned.", "b.txt": "Ben baked bread. The lamp burned."}


def example(**fields):
    return {
        "query": "Who lit it?",
        "query_by": {"model_name": "gpt-4", "type": "ai"},
        "reference_contexts": ["Ada lit the lamp."],
        "reference_answer": "Ada.",
        "reference_answer_by": {"model_name": "", "type": "human"},
        **fields,
    }


def dataset(folder, *examples):
    for name, text in FILES.items():
        write(folder / "source_files" / name, text)
    return write(folder / "rag_dataset.json", json.dumps({"examples": list(examples)}, indent=4))


def test_contexts_that_stand_in_a_file_are_evidence(tmp_path):
    path = dataset(
        tmp_path,
        example(),
        example(reference_contexts=["Ben baked bread.", "Ada lit the lamp."]),
        example(reference_contexts=["Ada lit the lamp.", "Ada lit a lamp."]),
        example(reference_contexts=["Nobody knows."]),
        example(reference_contexts=["The lamp burned.", "The lamp burned."]),
        example(reference_contexts=None, reference_answer="", query_by=None, reference_answer_by=None),
    )
    data = read_data(path, "llama_rag_dataset")
    assert data.documents == FILES
    assert [question.id for question in data.questions] == [f"rag_dataset-{number}" for number in range(1, 7)]
    both = ("a.txt", "b.txt")
    assert [question.documents for question in data.questions] == [("a.txt",), both, both, both, ("a.txt",), both]
    assert [evidence_texts(data, question) for question in data.questions] == [
        ["Ada lit the lamp."],
        ["Ben baked bread.", "Ada lit the lamp."],
        ["Ada lit the lamp."],
        [],
        ["The lamp burned."],
        [],
    ]
    found = [(question.about["contexts"], question.about["contexts_found"]) for question in data.questions]
    assert found == [(1, 1), (2, 2), (2, 1), (1, 0), (2, 2), (0, 0)]
    assert data.questions[0].answers == ("Ada.",)
    assert data.questions[0].about["query_by"] == "ai gpt-4"
    assert data.questions[0].about["reference_answer_by"] == "human"
    assert (data.questions[5].answers, data.questions[5].about) == ((), {"contexts": 0, "contexts_found": 0})


def test_all_files_for_every_question(tmp_path):
    (question,) = read_data(dataset(tmp_path, example()), "llama_rag_dataset", search="all").questions
    assert question.documents == ("a.txt", "b.txt")
    assert len(question.evidence) == 1
    with pytest.raises(OptionError, match="search must be one of source, all"):
        read_data(tmp_path, "llama_rag_dataset", search="none")


def test_a_folder_and_files_in_another_place(tmp_path):
    path = dataset(tmp_path / "set", example())
    expected = read_data(path, "llama_rag_dataset")
    again = read_data(tmp_path / "set", "llama_rag_dataset")
    assert (again.name, again.questions, again.documents) == ("set", expected.questions, expected.documents)
    (path.parent / "source_files").rename(tmp_path / "files")
    compressed(path)
    assert (
        read_data(tmp_path / "set", "llama_rag_dataset", documents=tmp_path / "files").questions == expected.questions
    )
    with pytest.raises(InputFileError, match=r"cannot read the folder .*source_files"):
        read_data(tmp_path / "set", "llama_rag_dataset")
    with pytest.raises(InputFileError, match=r"rag_dataset\.json is missing in the folder"):
        read_data(tmp_path / "files", "llama_rag_dataset")


def test_contexts_in_a_pdf_file_count_over_its_pages(tmp_path):
    path = dataset(tmp_path, example(reference_contexts=["Page two has a crane."]))
    write(tmp_path / "source_files" / "c.pdf", pdf("Page one.", "Page two has a crane."))
    data = read_data(path, "llama_rag_dataset")
    (part,) = data.questions[0].evidence
    assert part == ("c.pdf", 11, 32)
    assert data.questions[0].documents == ("c.pdf",)


def test_white_space_in_contexts_is_that_of_another_reader(tmp_path):
    path = dataset(tmp_path, example(reference_contexts=["Page  two\nhas a c rane."]))
    write(tmp_path / "source_files" / "c.pdf", pdf("Page one.", "Page two has a crane."))
    write(tmp_path / "source_files" / "d.html", "<p>A page.</p>")
    data = read_data(path, "llama_rag_dataset")
    assert data.questions[0].evidence == (("c.pdf", 11, 32),)
    everything = read_data(path, "llama_rag_dataset", search="all")
    assert everything.documents["d.html"] == "<p>A page.</p>"


def test_every_source_file_must_be_readable(tmp_path):
    path = dataset(tmp_path, example())
    write(tmp_path / "source_files" / "c.txt", b"\xff")
    message = refused(path, "llama_rag_dataset")
    assert "c.txt is not UTF-8 text" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"examples": [example(), example(query="")]}, "example 2: query must not be empty"),
        ({"examples": [example(query=None)]}, "example 1: query must be a string, got None"),
        ({"examples": [example(reference_contexts=[""])]}, "example 1: reference_contexts[0] must not be empty"),
        ({"examples": [example(reference_contexts=[3])]}, "reference_contexts[0] must be a string, got 3"),
        ({"examples": [example(reference_answer=["Ada"])]}, "reference_answer must be a string, got ['Ada']"),
        ({"examples": [example(query_by="gpt-4")]}, "query_by must be a mapping, got 'gpt-4'"),
        ({"examples": [3]}, "example 1: must be a mapping, got 3"),
        ({"examples": {}}, "examples must be a list, got a mapping"),
        ({"predictions": []}, "examples is missing; the fields are predictions"),
        ({"examples": []}, "contains no questions"),
    ],
)
def test_wrong_examples(tmp_path, content, words):
    path = dataset(tmp_path)
    write(path, json.dumps(content))
    assert words in refused(path, "llama_rag_dataset")


def found(folder, texts, *passages):
    """The documents and texts that passages are found at."""
    for name, text in texts.items():
        write(folder / "source_files" / name, text)
    examples = [example(reference_contexts=[passage]) for passage in passages]
    path = write(folder / "rag_dataset.json", json.dumps({"examples": examples}))
    data = read_data(path, "llama_rag_dataset")
    return [
        (part.document, texts[part.document][part.start : part.end])
        for question in data.questions
        for part in question.evidence
    ]


TEXTS = {"a.txt": "  Ada lit\nthe  lamp. It burned.", "b.txt": "It burned. Ada lit the lamp. It burned again."}


@pytest.mark.parametrize(
    ("passage", "document", "expected"),
    [
        ("It burned.", "a.txt", "It burned."),
        ("Ada lit the lamp.", "b.txt", "Ada lit the lamp."),
        ("Ada  lit the lamp.", "a.txt", "Ada lit\nthe  lamp."),
        (" lamp.\nIt", "a.txt", "lamp. It"),
        ("Adalitthelamp.Itburnedagain.", "b.txt", "Ada lit the lamp. It burned again."),
        ("n.", "b.txt", "n."),
    ],
)
def test_to_the_letter_in_any_document_before_white_space_aside(tmp_path, passage, document, expected):
    assert found(tmp_path, TEXTS, passage) == [(document, expected)]


@pytest.mark.parametrize("passage", ["ada lit the lamp.", "Ada lit a lamp.", "It burned again. Ada"])
def test_passages_that_are_not_there(tmp_path, passage):
    assert not found(tmp_path, TEXTS, passage)


def test_random_pieces_with_other_white_space_are_found_where_they_are(tmp_path):
    random_text = random.Random(5)
    text = "".join(f"w{number}{random_text.choice([' ', '  ', chr(10), chr(9), ''])}" for number in range(1000, 1500))
    starts = [random_text.randrange(len(text) - 60) for _ in range(200)]
    pieces = [text[start : start + random_text.randrange(12, 60)] for start in starts]
    passages = [re.sub(r"\s+|(?<=w)", " ", piece) for piece in pieces]
    assert found(tmp_path, {"t.txt": text}, *passages) == [("t.txt", piece.strip()) for piece in pieces]
