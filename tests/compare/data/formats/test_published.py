"""The published formats: small files as their authors lay them out, and the questions that they have."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from oprag._internal.files.pdf import pdf_pages
from oprag.compare import read_data
from oprag.compare.data.formats import html_text
from oprag.errors import InputFileError, OptionError
from tests.compare.data.writing import compressed, evidence_texts, only, refused, write
from tests.pdfs import pdf

BOOK = "The tower stood on a ridge. " * 3
PLACES = ["in a marsh", "on a ridge", "by an inlet", "in a valley"]
INFINITE = {"id": 0, "context": BOOK, "input": "Where did it stand?", "answer": ["on a ridge"], "options": []}
LONG = {"input": "Where?", "context": BOOK, "answers": ["on a ridge", "a ridge"], "length": 6, "dataset": "towers"}
LONG |= {"all_classes": None, "_id": "a1"}
LONG_2 = {"_id": "b1", "difficulty": "hard", "question": "Where?", "answer": "B", "context": BOOK}
LONG_2 |= {f"choice_{letter}": place for letter, place in zip("ABCD", PLACES, strict=True)}
MED = {"question": "Which herb?", "answer": "Sage", "options": {"B": "Sage", "A": "Mint"}, "answer_idx": "B", "step": 1}
TURNS = ["Chair: We begin .", "Ada: The lamp is out .", "Ben: ", "Ada: So buy one .", "Chair: Done ."]
MEETING = {
    "topic_list": [],
    "meeting_transcripts": [dict(zip(("speaker", "content"), turn.split(": "), strict=True)) for turn in TURNS],
    "general_query_list": [{"query": "What of it?", "answer": "A lamp."}],
    "specific_query_list": [
        {"query": "What lamp?", "answer": "One.", "relevant_text_span": [["1", "3"]]},
        {"query": "Who?", "answer": "Two.", "relevant_text_span": [["0", "0"], [4, 4]]},
    ],
}
ASKED = {"question": "What stood there?", "options": ["A cat. ", "A pie."], "gold_label": 2, "difficult": 1}
ARTICLE = {
    "article_id": "20001",
    "set_unique_id": "20001_W1",
    "title": "The Pie",
    "license": "None",
    "article": "<p>\n The pie stood\n on the &amp; sill. </p><p>Two cats<br/>came.</p>",
    "questions": [{**ASKED, "question_unique_id": "Q7"}, {**ASKED, "gold_label": 1, "difficult": 0}],
}
HIDDEN = {**ARTICLE, "article": "Plain < text.", "questions": [{"question": "What?", "options": ["a", "b"]}]}
SWAN, HERON, OLD = "2023 Q1 SWAN.pdf", "2023 Q1 HERON.pdf", "2022 Q3 HERON.pdf"
REPORTS = {f"docs/{name}": pdf(f"Report {name}.", "Page two.") for name in (SWAN, HERON, OLD)}
TEN = f"Ten boats. (SOURCE: {HERON})\n\nOf wood.\n\nSOURCE(S): {HERON}, {OLD}"
STORIES = {
    "n/tmp/aa.content": "Adá sings.\r\n".encode(),
    "n/tmp/bb.content": "<html><head><title>x</title></head><body><pre>INT.\n\n  AD\xc1\n</pre></body>".encode(
        "latin-1"
    ),
}


def lines(*rows: Any) -> str:
    return "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)


def table(*rows: Any) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def boats(sources: str, answer: str = TEN) -> str:
    return table(("Question", "Source Docs", "Question Type", "Answer"), ("How many?", sources, "RAG", answer))


def stories(*rows: Any) -> dict[str, Any]:
    return {"n/qaps.csv": table(("document_id", "set", "question", "answer1", "answer2"), *rows), **STORIES}


FOUND: list[tuple[str, dict[str, Any], dict[str, Any], list[dict[str, Any]]]] = [
    (
        "infinitebench",
        {"qa.jsonl": lines(INFINITE, {**INFINITE, "id": 4, "context": "Another.", "answer": "nowhere", "task": "qa"})},
        {},
        [
            {
                "id": "0",
                "text": "Where did it stand?",
                "documents": ("qa-1",),
                "answers": ("on a ridge",),
                "labels": None,
            },
            {"id": "4", "documents": ("qa-2",), "answers": ("nowhere",), "about": {"task": "qa"}},
        ],
    ),
    *(
        ("infinitebench", {"mc.jsonl": lines({**INFINITE, "answer": answer, "options": PLACES})}, {}, [expected])
        for expected in [{"choices": (*PLACES,), "labels": ("on a ridge", "B"), "answers": ("on a ridge",)}]
        for answer in ("on a ridge", ["on a ridge"], ["on a ridge", "B"])
    ),
    # Of equal options the first is right, as in the benchmark's own code.
    (
        "infinitebench",
        {"mc.jsonl": lines({**INFINITE, "answer": ["x"], "options": ["y", "x", "x"]})},
        {},
        [{"right_choice": 1}],
    ),
    (
        "longbench",
        {"towers.jsonl": lines(LONG, {**LONG, "_id": "a2", "all_classes": ["x"]})},
        {},
        [
            {
                "id": "a1",
                "text": "Where?",
                "documents": ("towers-1",),
                "answers": ("on a ridge", "a ridge"),
                "about": {"length": 6, "dataset": "towers"},
            },
            {
                "id": "a2",
                "documents": ("towers-1",),
                "about": {"length": 6, "dataset": "towers", "all_classes": '["x"]'},
            },
        ],
    ),
    ("longbench", {"a.jsonl": lines({**LONG, "input": ""})}, {"question": "Sum up."}, [{"text": "Sum up."}]),
    *(
        (
            "longbench",
            {"v2.json": text},
            {},
            [{"id": "b1", "text": "Where?", "about": {"difficulty": "hard"}, **LABELLED}],
        )
        for LABELLED in [{"choices": (*PLACES,), "labels": ("on a ridge", "B"), "answers": ("on a ridge",)}]
        for text in (json.dumps([LONG_2], indent=2), json.dumps(LONG_2, indent=1), lines(LONG_2))
    ),
    (
        "medqa",
        {
            "t.jsonl": lines(MED, {**MED, "answer_idx": None}),
            "en/Herbs.txt": "Sage.",
            "en/Roots.txt.gz": "",
            "en/Old.pdf": pdf("Leaves."),
        },
        {"documents": "en"},
        [
            {
                "id": f"t-{number}",
                "documents": ("Herbs.txt", "Old.pdf", "Roots.txt"),
                "choices": ("Mint", "Sage"),
                "labels": ("Sage", "B"),
                "answers": ("Sage",),
                "about": {"step": 1},
            }
            for number in (1, 2)
        ],
    ),
    (
        "narrativeqa",
        stories(("aa", "test", "Who sings?", "Ada", "Ada"), ("bb", "valid", 'He: "Who,\nif any?"', "Ben", "No one")),
        {},
        [
            {"id": "qaps-2", "documents": ("aa",), "answers": ("Ada",), "about": {"split": "test"}},
            {"id": "qaps-3", "text": 'He: "Who,\nif any?"', "documents": ("bb",), "answers": ("Ben", "No one")},
        ],
    ),
    *(
        (
            "narrativeqa",
            stories(("aa", "test", "Who?", "Ada", "Ada"), ("cc", "train", *"???")),
            options,
            [{"id": "qaps-2"}],
        )
        for options in ({"split": "test"}, {"exclude": ["cc"]}, {"exclude": "cc"})
    ),
    (
        "qmsum",
        {"val/Bed007.json": json.dumps(MEETING, indent=2)},
        {},
        [
            {
                "id": "Bed007-general-1",
                "text": "What of it?",
                "documents": ("Bed007",),
                "answers": ("A lamp.",),
                "evidence": [],
                "about": {"kind": "general", "split": "val"},
            },
            {
                "id": "Bed007-specific-1",
                "evidence": ["\n".join(TURNS[1:4])],
                "about": {"kind": "specific", "split": "val"},
            },
            {"id": "Bed007-specific-2", "evidence": [TURNS[0], TURNS[4]]},
        ],
    ),
    (
        "qmsum",
        {"a.jsonl": lines(MEETING)},
        {"queries": "general"},
        [{"id": "a-1-general-1", "about": {"kind": "general"}}],
    ),
    ("qmsum", {"m/b.json.gz": "", "m/more/c.jsonl": lines(MEETING)}, {"queries": "general"}, [{}, {}]),
    (
        "quality",
        {"QuALITY.v1.0.1.dev": lines(ARTICLE)},
        {},
        [
            {
                "id": "Q7",
                "labels": ("A pie.", "B"),
                "answers": ("A pie.",),
                "about": {"title": "The Pie", "split": "dev", "difficult": 1},
            },
            {
                "id": "20001_W1_2",
                "labels": ("A cat. ", "A"),
                "about": {"title": "The Pie", "split": "dev", "difficult": 0},
            },
        ],
    ),
    ("quality", {"Q.test": lines(HIDDEN)}, {}, [{"right_choice": None, "answers": (), "choices": ("a", "b")}]),
    *(
        ("kg_rag", {"q.csv": boats(sources), **REPORTS}, {}, [{"id": "q-2", "documents": documents}])
        for sources, documents in [
            ("*2023 Q1 SWAN*", (SWAN,)),
            (SWAN, (SWAN,)),
            ("2023 Q1 SWAN", (SWAN,)),
            (f"*SWAN*, {OLD}", (SWAN, OLD)),
            ("*SWAN*\n2022 Q3 HERON", (SWAN, OLD)),
            ("*HERON*;*2023*", (OLD, HERON, SWAN)),
            ("", (OLD, HERON, SWAN)),
        ]
    ),
    *(
        ("kg_rag", {"q.csv": boats("*SWAN*", answer), **REPORTS}, {"source_line": keep}, [{"answers": answers}])
        for answer, keep, answers in [
            (TEN, True, (TEN,)),
            (TEN, False, (TEN.partition("\n\nSOURCE(S)")[0],)),
            ("Ten.\r\n\r\n\x0bSOURCE\n\n:", False, ("Ten.",)),
            ("Ten. \nSOURCE a", False, ("Ten. \nSOURCE a",)),
            ("Ten. SOURCE: a", False, ("Ten. SOURCE: a",)),
        ]
    ),
    (
        "kg_rag",
        {"q.csv": "\ufeffAnswer ,My  Notes, question\r\n\r\n,,\r\nTen.,n,How many?\r\n", **REPORTS},
        {},
        [{"id": "q-4", "text": "How many?", "answers": ("Ten.",), "about": {"my_notes": "n"}}],
    ),
    ("kg_rag", {"q.csv": boats("b"), "other/b.txt": "Boats."}, {"documents": "other"}, [{"documents": ("b.txt",)}]),
]


def pages_once(name, data, extra, known={}):  # noqa: B006
    """The pages of a file; files with the same bytes are read once, since each reading starts a process."""
    if data not in known:
        known[data] = tuple(pdf_pages(name, data, extra))
    return list(known[data])


@pytest.fixture(autouse=True)
def _pages(monkeypatch):
    monkeypatch.setattr("oprag.compare.data.files.pdf_pages", pages_once)


def lay(folder: Path, files: dict[str, Any], options: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    """The file or folder of the first name, and the options with whole paths."""
    for name, content in files.items():
        other = json.dumps(MEETING) if name.endswith(".json.gz") else "Roots."
        if name.endswith(".gz"):
            compressed(write(folder / name.removesuffix(".gz"), other))
        else:
            write(folder / name, content)
    first, _, inside = next(iter(files)).partition("/")
    where = {name: folder / given if name == "documents" else given for name, given in options.items()}
    return folder / first if first in ("n", "m") else folder / first / inside, where


@pytest.mark.parametrize(("format_name", "files", "options", "expected"), FOUND)
def test_questions_of_a_file(tmp_path, format_name, files, options, expected):
    path, options = lay(tmp_path, files, options)
    data = read_data(path, format_name, **options)
    assert len(data.questions) == len(expected)
    for question, fields in zip(data.questions, expected, strict=True):
        found = {name: getattr(question, name) for name in fields} | {"evidence": evidence_texts(data, question)}
        assert found == {"evidence": found["evidence"], **fields}


@pytest.mark.parametrize(
    ("format_name", "files", "options", "documents"),
    [
        ("infinitebench", {"qa.jsonl": lines(INFINITE, {**INFINITE, "id": 1})}, {}, {"qa-1": BOOK}),
        ("qmsum", {"a.jsonl": lines(MEETING)}, {}, {"a-1": "\n".join(TURNS)}),
        ("narrativeqa", stories(("aa", "test", *"???")), {}, {"aa": "Adá sings.\r\n"}),
        ("narrativeqa", stories(("bb", "test", *"???")), {}, {"bb": "INT.\n\n  ADÁ"}),
        ("quality", {"Q.dev": lines(ARTICLE)}, {}, {"Q-1": "The pie stood\n on the & sill.\nTwo cats\ncame."}),
        ("quality", {"Q.dev": lines(HIDDEN)}, {}, {"Q-1": "Plain < text."}),
        ("kg_rag", {"q.csv": boats(SWAN), **REPORTS}, {}, {SWAN: [f"Report {SWAN}.", "Page two."]}),
    ],
)
def test_documents_of_a_file(tmp_path, format_name, files, options, documents):
    path, options = lay(tmp_path, files, options)
    assert read_data(path, format_name, **options).documents == documents


def test_a_line_break_in_a_turn_begins_no_line(tmp_path):
    turns = [{"speaker": "Ada", "content": "One .\nTwo ."}, {"speaker": "Ben", "content": "Three ."}]
    query = {"query": "Who?", "answer": "Ben.", "relevant_text_span": [[1, 1]]}
    meeting = {"meeting_transcripts": turns, "specific_query_list": [query]}
    data = read_data(write(tmp_path / "a.json", json.dumps(meeting)), "qmsum")
    assert data.documents == {"a": "Ada: One . Two .\nBen: Three ."}
    assert evidence_texts(data, only(data)) == ["Ben: Three ."]


@pytest.mark.parametrize(
    ("format_name", "files", "words"),
    [
        (
            "infinitebench",
            {"a.jsonl": lines(INFINITE, {**INFINITE, "input": ""})},
            ", line 2: question must not be empty",
        ),
        ("infinitebench", {"a.jsonl": lines({**INFINITE, "options": PLACES[2:]})}, "infinitebench: ValueError: "),
        ("longbench", {"a.jsonl": lines({**LONG, "input": " "})}, "question must not be empty"),
        (
            "longbench",
            {"a.json": json.dumps([LONG_2, {**LONG_2, "answer": "E"}])},
            ", item 2: is not a record of longb",
        ),
        ("longbench", {"a.jsonl": lines({**LONG_2, "answer": ""})}, "is not a record of longbench"),
        ("longbench", {"a.jsonl": lines({**LONG_2, "answer": "AB"})}, "is not a record of longbench"),
        ("longbench", {"a.jsonl": lines({"question": "Who?"})}, "is not a record of longbench: KeyError: 'input'"),
        ("longbench", {"a.json": '[{"input": 1},\n{"input"}]'}, "invalid JSON: expected `:` at line 2 column 9"),
        ("longbench", {"a.json": b"\xff\xfe["}, "is not UTF-8 text"),
        ("narrativeqa", stories(("cc", "test", *"???")), "qaps.csv, line 2: document 'cc' not found in"),
        ("narrativeqa", stories(("aa", "test", "?", "!")), "must have 5 cells, as many as the header, got 4"),
        *(
            ("qmsum", {"a.jsonl": lines({**MEETING, "specific_query_list": [wrong]})}, f", line 1: {words}")
            for wrong, words in [
                (
                    {"query": "?", "answer": "!", "relevant_text_span": [["1", "5"]]},
                    "is not a record of qmsum: IndexError",
                ),
                (
                    {"query": "?", "answer": "!", "relevant_text_span": [["3", "1"]]},
                    "evidence[0] must be a non-empty span",
                ),
                (
                    {"query": "?", "answer": "!", "relevant_text_span": [["a", "b"]]},
                    "is not a record of qmsum: ValueError",
                ),
            ]
        ),
        (
            "quality",
            {"q.dev": lines({**ARTICLE, "questions": [{**ASKED, "gold_label": 0}]})},
            "right_choice must be the",
        ),
        ("kg_rag", {"q.csv": boats("*GULL*"), **REPORTS}, ", line 2: document '*GULL*' not found in"),
        (
            "kg_rag",
            {"q.csv": "Question\nHow many?,x\n", **REPORTS},
            ", line 2: must have 1 cells, as many as the header",
        ),
        ("kg_rag", {"q.csv": 'Question\n"How many?\n', **REPORTS}, "invalid CSV after line 1: unexpected end of data"),
        ("kg_rag", {"q.csv": 'Question\nWho?\n"How" many?\n', **REPORTS}, "invalid CSV after line 2"),
    ],
)
def test_wrong_files(tmp_path, format_name, files, words):
    path, options = lay(tmp_path, files, {})
    assert words in refused(path, format_name, **options)


@pytest.mark.parametrize(
    ("format_name", "files", "options", "error", "words"),
    [
        ("kg_rag", {"q.csv": boats("")}, {}, InputFileError, "docs is not a folder"),
        ("medqa", {"t.jsonl": lines(MED)}, {}, OptionError, "medqa requires documents"),
        (
            "medqa",
            {"t.jsonl": lines(MED), "en/a.csv": "x"},
            {"documents": "en"},
            InputFileError,
            "unexpected file or link",
        ),
        (
            "narrativeqa",
            stories(("aa", *"????")),
            {"split": "dev"},
            OptionError,
            "split must be one of train, valid, test",
        ),
        ("narrativeqa", {"n/tmp/aa.content": "x"}, {}, InputFileError, r"qaps\.csv is missing in the folder"),
    ],
)
def test_wrong_options_and_missing_files(tmp_path, format_name, files, options, error, words):
    path, options = lay(tmp_path, files, options)
    with pytest.raises(error, match=words):
        read_data(path, format_name, **options)


# HTML of published articles, as text.


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Plain.\n\n\n\n Text. ",
        "If a < b and c > d, then AT&T & co. &lt;",
        "<3 and <- and <Mr. Unknown>",
        "x</unknown>",
    ],
)
def test_a_text_without_tags_stays_as_it_is(text):
    assert html_text(text) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One.</p><p>Two.</p>", "One.\nTwo."),
        ("One<br>two<BR/>three<br />four", "One\ntwo\nthree\nfour"),
        ("<p>A <i>small</i> <b>bird</b>&nbsp;&amp; caf&eacute; &#8212; so.</p>", "A small bird\xa0& café — so."),
        ("<h1>Title</h1>\n\n\n\n<p> Text</p>", "Title\n\n Text"),
        ("<html><head><title>No</title><style>p {}</style></head><body>Yes<script>no()</script>!</body>", "Yes!"),
        ("<pre>\n  INT.\n\n     ADA\n</pre>", "INT.\n\n     ADA"),
        ("<p>If a < b.</p>", "If a < b."),
        ("<p>Left open", "Left open"),
        ('<p class="a>b">Odd</p>', "Odd"),
        ("<!-- no --><p>Yes</p>", "Yes"),
        ("<table><tr><td>One</td><td>Two</td></tr></table>", "One\nTwo"),
    ],
)
def test_tags_go_and_what_stands_apart_begins_a_line(html, text):
    assert html_text(html) == text
