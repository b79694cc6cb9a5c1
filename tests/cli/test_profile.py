"""`--profile`, on the commands that make contexts and answers."""

import pytest

from oprag.methods.profile import Profile, write_profile
from tests.cli import commands, provider
from tests.cli.commands import QUESTION

ASSEMBLY = {"k": 3, "token_budget": None, "order": "rank", "count_tokens": "words", "gap": "[...]", "separator": "\\n"}


@pytest.fixture(autouse=True)
def model(monkeypatch):
    return provider.install(monkeypatch)


@pytest.fixture
def saved(tmp_path):
    def save(**tables):
        write_profile(Profile(**tables), tmp_path / "oprag.toml")
        return str(tmp_path / "oprag.toml")

    return save


ANSWER = ("--model", "groq:cranes")
PASSAGES = ()


def run(model, *arguments):
    return commands.run("ask", *arguments, "--chunk-size", 12, *model)


def json_of(model, *arguments):
    return commands.json_of("ask", *arguments, "--chunk-size", 12, *model)


def ranks(context):
    return [chunk["rank"] for chunk in context["kept"]]


def test_a_context_is_that_of_the_same_options(book, saved):
    path = saved(context={**ASSEMBLY, "separator": "\n---\n"})
    typed = ("--k", 3, "--token-budget", 10**9, "--order", "rank", "--gap", "[...]", "--separator", r"\n---\n")
    ours = json_of(PASSAGES, book, QUESTION, "--profile", path)
    same = json_of(PASSAGES, book, QUESTION, *typed)
    assert ours["text"] == same["text"]
    assert ranks(ours) == ranks(same) == [0, 1, 2]
    assert ours["tokens"] == len(ours["text"].split())


@pytest.mark.parametrize("model_options", [PASSAGES, ANSWER])
def test_what_is_typed_wins_also_where_it_is_the_default(book, saved, model_options):
    path = saved(context={"k": 3, "order": "rank"})
    data = json_of(model_options, book, QUESTION, "--profile", path, "--order", "source", "--k", 4)
    context = data["contexts"][0] if model_options else data
    assert ranks(context) == ranks(json_of(PASSAGES, book, QUESTION, "--k", 4))
    assert sorted(ranks(context)) == [0, 1, 2, 3] != ranks(context)


def test_an_answer_is_made_with_the_method_and_the_prompts(book, saved, model):
    method = {"method": "refine", "passage_tokens": 30, "prompts": {"instruction": "Say it in verse."}}
    path = saved(context={"k": 4, "count_tokens": "words"}, method=method)
    data = json_of(ANSWER, book, QUESTION, "--profile", path)
    assert data["method"] == "refine"
    assert {call["step"] for call in data["calls"]} == {"answer", "refine"}
    assert all("Say it in verse." in prompt for prompt in model.prompts)
    assert json_of(ANSWER, book, QUESTION, "--profile", path, "--method", "stuff")["method"] == "stuff"


@pytest.mark.parametrize("model_options", [PASSAGES, ANSWER])
def test_a_profile_that_cannot_be_used_is_one_sentence(book, tmp_path, model_options):
    path = tmp_path / "mine.toml"
    result = run(model_options, book, QUESTION, "--profile", path)
    assert result.exit_code == 2
    assert result.stderr == f"Error: cannot read the profile {path}: No such file or directory\n"
    for content, message in (
        ("format = 1\n[context]\nordr = 'rank'", "context: unknown option 'ordr'; did you mean 'order'?"),
        ("[contexts]\nk = 3", "unknown table or key 'contexts'; did you mean 'context'?"),
        ("[x]\nk = 3", "unknown table or key 'x'; expected one of format, written_by, about, context, method"),
    ):
        path.write_text(content)
        result = run(model_options, book, QUESTION, "--profile", path)
        assert result.exit_code == 2
        assert result.stderr == f"Error: mine.toml: {message}\n"
