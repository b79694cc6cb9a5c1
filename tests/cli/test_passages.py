"""`oprag ask` without a model, which prints the passages."""

import pytest

from oprag import ContextOptions
from oprag.errors import OptionError
from tests.cli.commands import check_refusal, done, json_of, run
from tests.option_values import a_bad_value_of_each_type


def test_passages_stand_in_source_order_with_source_and_span(book):
    question = "How much does a crane of the harbour lift?"
    output = done("ask", book, question, "--chunk-size", 24, "--k", 2, "--max-candidates", 3, "--explain").stdout
    assert output.index("nine cranes") < output.index("forty tons")
    assert str(book) in output.replace("\n", "")
    assert "characters 0–" in output
    assert "not among the first 2" in output


def test_json_holds_what_the_file_holds(book):
    data = json_of("ask", book, "Which comet?", "--chunk-size", 12, "--k", 3)
    text = book.read_text(encoding="utf-8")
    spans = [span for passage in data["passages"] for span in passage["spans"]]
    assert len(data["kept"]) == 3
    assert spans == sorted(spans, key=lambda span: span["start"])
    for passage in data["passages"]:
        (span,) = passage["spans"]
        assert passage["text"] == text[span["start"] : span["end"]]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--method", "refine"), "--method"),
        (("--cite", "--temperature", "0"), "--cite, --temperature"),
        (("--base-url", "http://localhost", "--max-tokens", "5"), "--base-url, --max-tokens"),
    ],
)
def test_options_that_only_an_answer_has_require_a_model(book, options, named):
    result = run("ask", str(book), "crane", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"without --model only the passages are printed; set --model or remove {named}\n" in result.stderr


def test_an_unknown_token_counter_is_refused(book):
    check_refusal(run("ask", book, "crane", "--count-tokens", "math"), "a token counter must be one of")


@a_bad_value_of_each_type
def test_a_bad_value_is_refused_in_the_words_of_the_dataclass(book, name, value):
    with pytest.raises(OptionError) as expected:
        ContextOptions(**{name: value})
    result = run("ask", str(book), "crane", f"--{name.replace('_', '-')}", str(value))
    assert result.exit_code == 2
    told = " ".join(result.stderr.replace("│", " ").split())
    # Of a few values the command line itself knows all.
    assert str(expected.value).split(", got")[0] in told or f"'{value}' is not one of" in told
