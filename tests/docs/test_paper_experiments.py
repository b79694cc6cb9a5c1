"""The experiment files of the papers: read as they are, planned and run on small data of the official formats."""

import re
import shutil
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from oprag.cli.compare import read_experiment
from oprag.compare import EmbedderSpec, Limits, ModelSpec, make_plan, read_data, run
from oprag.errors import ExperimentError
from tests.compare.helpers import Words, reply_to, rows
from tests.official_data import write_official

FOLDER = Path(__file__).parents[2] / "examples" / "experiments"
PARTS = ("self_route_encoders",)
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.py")) if path.stem not in PARTS}
README = (FOLDER / "README.md").read_text(encoding="utf-8")

PROVIDERS = re.compile(r"(openai|google_genai):\S+")

every_file = pytest.mark.parametrize("name", FILES)


@cache
def read(name):
    """A file as it is, with data where it says."""
    folder = Path(mkdtemp())
    for path in FOLDER.glob("*.py"):
        shutil.copy(path, folder)
    seeds = count()

    def read_official(path, format_name, *, size, source, **options):
        write_official(path, format_name, next(seeds), **options)
        return read_data(path, format_name, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("oprag.compare.read_data", read_official)
        given = read_experiment(f"{folder / FILES[name].name}:experiment")[0]
    shutil.rmtree(folder)
    # Tokenizers must be fetched, so contexts are counted by another one.
    return given, given.replace(count_tokens="words")


@pytest.fixture
def given(name):
    return read(name)[0]


@pytest.fixture
def experiment(name):
    return read(name)[1]


def offline(experiment, *, few=False):
    """The experiment with stand-ins for what must be fetched, served or paid for; all else stays.

    Args:
        experiment: The experiment.
        few: Keep the first two numbers of each axis that has numbers, and one question of each set.
    """
    return experiment.replace(
        models={name: ModelSpec(reply_to, f"stand-in for {name}") for name in experiment.models},
        embedders={name: EmbedderSpec(Words(name), name) for name in experiment.embedders},
        score_embedder=EmbedderSpec(Words("score"), "score"),
        grid=[
            {name: _offline_values(name, values, few=few) for name, values in one.items()} for one in experiment.grid
        ],
        data={name: data.sample(1) if few else data for name, data in experiment.data.items()},
    )


def _offline_values(axis, values, *, few):
    if axis == "store":
        return ["in_memory"]  # the others are packages or services of their own
    return values[:2] if few and isinstance(values[0], int | float) else values


def answers_of(name):
    """The answers, calls and tokens that the README names."""
    (row,) = re.findall(rf"^\| \[{name}\.py\]\({name}\.py\) \|.*$", README, re.MULTILINE)
    return row.split(" | ")[-3:]


@every_file
def test_models_and_embedders_are_named_and_no_money_is_set(name, given):
    for model in given.models.values():
        assert PROVIDERS.fullmatch(model.use)
        assert ("base_url" in model.settings) == ("Llama" in model.use)
        assert model.settings["max_tokens"] <= 512
        assert model.settings["temperature"] == 0
    for embedder in given.embedders.values():
        use = str(embedder.use)
        bge_or_arctic = "BAAI/bge-large-en-v1.5" in use or "snowflake-arctic-embed-m-v1.5" in use
        assert bool(embedder.question_prefix) == bge_or_arctic
        assert embedder.document_prefix == ""
    assert re.match("(tiktoken|huggingface):", given.count_tokens)
    assert given.prices == {}
    assert given.limits == Limits()


@pytest.mark.parametrize("name", ["self_route"])
def test_self_route_asks_in_the_words_of_the_paper(given):
    route = " ".join(given.prompts.route.user.split())
    assert "rite unanswerable if the query can not be answered based on the provided text" in route


@pytest.mark.parametrize("name", [*FILES, "answers", "coverage"])
def test_it_is_counted_without_its_data(name, tmp_path):
    for folder in (FOLDER, FOLDER.parent / "compare_reference"):
        shutil.copytree(folder, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("data", "reference"))
    given = f"{tmp_path / name}.py:experiment" if name in FILES else f"{tmp_path / name}.toml"
    shown = CliRunner().invoke(app, ["compare", given, "--plan"])
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert "; get it: " in shown.stdout
    assert shown.stdout.endswith("calls, tokens and costs are planned once the data is there\n")
    if name in FILES:
        assert f" {answers_of(name)[0]} answers\n" in shown.stdout
    experiment, _ = read_experiment(given)
    with pytest.raises(ExperimentError, match=r"the data set '.*' is missing: no such file or folder: "):
        run(experiment, tmp_path / "results.db")
    assert not (tmp_path / "results.db").exists()


@every_file
def test_it_runs(name, experiment, tmp_path):
    small = offline(experiment, few=True)
    report = run(small, tmp_path / "results.db")
    assert report.complete, report
    found = rows(
        tmp_path / "results.db", "SELECT data, method, count(*) FROM results WHERE status = 'answered' GROUP BY 1, 2"
    )
    cells = small.grid_cells.cells
    assert sum(number for _, _, number in found) == len(cells) == report.answered
    assert {(data, method) for data, method, _ in found} == {(cell.data, cell.method) for cell in cells}


SIZES = {"en_qa": 351, "en_mc": 229, "quality": 2_086, "multifieldqa": 150}


@every_file
def test_the_readme_has_it_with_the_sums_of_its_grid(name, experiment):
    answers, calls, tokens = answers_of(name)
    rest = {"dos_rag_narrativeqa": 10_391, "self_route": 200, "sakar_emekci": 10}.get(name, 0)
    cells = [(cell, SIZES.get(cell.data, rest)) for cell in experiment.grid_cells.cells]
    assert answers == f"{sum(questions for _, questions in cells):,}"
    if name == "sakar_emekci":
        return
    # No call more than answers: what is routed on is asked by long_context as well, see below.
    assert calls == answers
    read = sum(
        n * (cell.context_options.token_budget or 128 * (cell.context_options.k or 0))
        for cell, n in cells
        if cell.method == "stuff"
    )
    if name != "self_route":
        assert tokens.startswith(f"{round(read / 1e6):,} million")


@pytest.mark.parametrize("name", ["op_rag_table_1"])
def test_what_is_routed_on_asks_what_long_context_asks(experiment):
    small = offline(experiment)
    grids = {
        method: [one for one in small.grid if method in one["method"] and one["model"] == ["gpt_4o"]]
        for method in ("self_route", "long_context")
    }
    # In Table 1 two models have one grid.
    grids["long_context"] = grids["long_context"] or [{**small.grid[1], "model": ["gpt_4o"]}]
    routed = make_plan(small.replace(grid=grids["self_route"]))
    assert routed.calls > 0
    assert make_plan(small.replace(grid=[*grids["self_route"], *grids["long_context"]])).calls == routed.calls
