"""`oprag ask` without a model, which prints the passages, and `oprag demo`."""

import json
import re
from itertools import takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from oprag import ContextOptions, OptionError
from oprag.cli.app import app
from tests.option_values import a_bad_value_of_each_type

PARTS = {
    "harbour": "The harbour of Aldmere has nine cranes. Ships wait outside when the wind blows from the west. ",
    "bread": "Bread rises for three hours in a cool cellar before it is baked. The crust must sing when it cools. ",
    "comet": "A comet crossed the sky in March, and the observatory measured its tail every night. ",
    "crane": "Each crane of the harbour lifts forty tons, and the oldest crane was built in Leith. ",
}


@pytest.fixture
def runner():
    return CliRunner()


@pytest.fixture
def book(tmp_path):
    path = tmp_path / "book.md"
    path.write_text("".join(PARTS.values()), encoding="utf-8")
    return path


def result_of(runner, *arguments, **kwargs):
    result = runner.invoke(app, ["ask", *map(str, arguments)], **kwargs)
    assert result.exit_code == 0, result.output
    return result


def json_of(runner, *arguments, **kwargs):
    return json.loads(result_of(runner, *arguments, "--json", **kwargs).stdout)


def test_passages_stand_in_source_order_with_source_and_span(runner, book):
    output = result_of(runner, book, "How much does a crane of the harbour lift?", "--chunk-size", 24, "--k", 2).stdout
    assert output.index("nine cranes") < output.index("forty tons")
    assert str(book) in output.replace("\n", "")
    assert "characters 0–" in output


def test_json_holds_what_the_file_holds(runner, book):
    data = json_of(runner, book, "Which comet?", "--chunk-size", 12, "--k", 3)
    text = book.read_text(encoding="utf-8")
    spans = [span for passage in data["passages"] for span in passage["spans"]]
    assert len(data["kept"]) == 3
    assert spans == sorted(spans, key=lambda span: span["start"])
    for passage in data["passages"]:
        (span,) = passage["spans"]
        assert passage["text"] == text[span["start"] : span["end"]]


def test_everything_fits_and_nothing_is_changed(runner, book):
    assert json_of(runner, book, "crane", "--chunk-size", 7)["text"] == book.read_text(encoding="utf-8")


def test_dropped_chunks_are_explained(runner, book):
    output = result_of(runner, book, "crane", "--chunk-size", 12, "--k", 1, "--max-candidates", 3, "--explain").stdout
    assert "dropped" in output
    assert "not among the first 1" in output


def test_the_token_budget_holds(runner, book):
    data = json_of(runner, book, "crane", "--chunk-size", 12, "--token-budget", 40, "--count-tokens", "local")
    assert 0 < data["tokens"] <= 40
    assert not data["tokens_are_approximate"]
    assert {drop["reason"] for drop in data["dropped"]} == {"token_budget"}


def test_rank_order_and_seeded_random_order(runner, book):
    rank = [chunk["rank"] for chunk in json_of(runner, book, "crane", "--chunk-size", 12, "--order", "rank")["kept"]]
    assert rank == sorted(rank)
    orders = {
        tuple(
            chunk["rank"]
            for chunk in json_of(runner, book, "crane", "--chunk-size", 12, "--order", "random", "--seed", seed)["kept"]
        )
        for seed in (1, 1, 2)
    }
    assert len(orders) == 2


def test_line_ends_and_a_byte_order_mark_do_not_move_offsets(runner, tmp_path):
    path = tmp_path / "dos.txt"
    path.write_bytes(b"\xef\xbb\xbf" + b"one line\r\nanother line\r\n")
    (passage,) = json_of(runner, path, "line")["passages"]
    assert passage["text"] == "one line\r\nanother line\r\n"


def test_escape_sequences_of_a_document_do_not_reach_the_terminal(runner, tmp_path):
    path = tmp_path / "hostile.txt"
    path.write_text("before \x1b]0;owned\x07 after \x1b[2J")
    assert "\x1b" not in result_of(runner, path, "before").stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "No such file"),
        (b"caf\xe9", "byte 3 is 0xe9"),
        (b"", "no text"),
        (b" \n\t ", "no text"),
        (b"ELF\x00\x01", "null bytes"),
    ],
)
def test_an_unreadable_file_is_one_line_on_standard_error(runner, tmp_path, content, message):
    path = tmp_path / "file.txt"
    if content is not None:
        path.write_bytes(content)
    result = runner.invoke(app, ["ask", str(path), "question"])
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_a_folder_is_no_file(runner, tmp_path):
    result = runner.invoke(app, ["ask", str(tmp_path), "question"])
    assert result.exit_code == 2
    assert "cannot read" in result.stderr


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--method", "refine"), "--method"),
        (("--cite", "--temperature", "0"), "--cite, --temperature"),
        (("--compare", "stuff,refine", "--max-tokens", "5"), "--max-tokens, --compare"),
        (("--choice", "one", "--base-url", "http://localhost"), "--base-url, --choice"),
    ],
)
def test_options_that_only_an_answer_has_require_a_model(runner, book, options, named):
    result = runner.invoke(app, ["ask", str(book), "crane", *options])
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"without --model only the passages are printed; set --model or remove {named}\n" in result.stderr


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--max-candidates", "5", "max_candidates must be at least k"),
        ("--count-tokens", "no.such:thing", "count_tokens: "),
        ("--count-tokens", "math", "count_tokens: "),
        ("--source-key", "a,,b", "source_key must be"),
        ("--chunk-size", "0", "chunk_size must be"),
        ("--chunk-overlap", "128", "chunk_overlap must be"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(runner, book, option, value, message):
    result = runner.invoke(app, ["ask", str(book), "crane", option, value])
    assert result.exit_code == 2
    assert message in result.stderr


@a_bad_value_of_each_type
def test_a_bad_value_is_refused_in_the_words_of_the_dataclass(runner, book, name, value):
    with pytest.raises(OptionError) as expected:
        ContextOptions(**{name: value})
    result = runner.invoke(app, ["ask", str(book), "crane", f"--{name.replace('_', '-')}", str(value)])
    assert result.exit_code == 2
    told = " ".join(result.stderr.replace("│", " ").split())
    # Of a few values the command line itself knows all.
    assert str(expected.value).split(", got")[0] in told or f"'{value}' is not one of" in told


def test_unknown_positions_are_warned_about(runner, book):
    result = runner.invoke(app, ["ask", str(book), "crane", "--chunk-size", "12", "--position-key", "nowhere"])
    assert result.exit_code == 0
    assert "Warning: position_key='nowhere': no chunk has this metadata key" in result.stderr


def test_version_and_help(runner):
    assert runner.invoke(app, ["--version"]).stdout.startswith("oprag 0.")
    assert "FILES" in runner.invoke(app, ["ask", "--help"]).stdout.upper()


def test_demo_compares_the_orders(runner):
    result = runner.invoke(app, ["demo"])
    assert result.exit_code == 0
    assert "source order (OP-RAG)" in result.stdout
    starts = [int(number.replace(",", "")) for number in re.findall(r"characters ([\d,]+)–", result.stdout)]
    assert len(starts) >= 5
    assert starts == sorted(starts)
    assert "dropped" in result.stdout


def test_demo_fits_80_columns_and_is_what_the_readme_shows(runner):
    printed = runner.invoke(app, ["demo"], env={"COLUMNS": "80"}).stdout.splitlines()
    # What a model says, and how to install one, may be longer.
    shown = list(takewhile(lambda line: not line.startswith(("No answer", "Answer of")), printed))
    assert max(map(len, shown)) <= 80
    root = Path(__file__).parents[2]
    readme = (root / "README.md").read_text()
    block = readme.partition("```text\n source order (OP-RAG)")[2].partition("```")[0].splitlines()[1:]
    printed = [line.rstrip() for line in printed]
    table = printed[next(row for row, line in enumerate(printed) if line.startswith(" source order")) + 1 :]
    if block[1] != table[1]:
        pytest.skip("the reference of this version of Python is another text")
    assert block == list(takewhile(bool, table))


def test_nothing_is_written(runner, book, monkeypatch):
    before = set(book.parent.rglob("*"))
    monkeypatch.chdir(book.parent)
    result_of(runner, book, "crane")
    assert set(Path.cwd().rglob("*")) == before
