"""The experiment files of the papers: read as they are, planned and run on small data of the official formats."""

import re
import shutil
import tomllib
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from oprag.compare import EmbedderSpec, ModelSpec, make_plan, read_experiment, run
from oprag.compare.axes import axes
from tests.compare.helpers import Words, reply_to, rows
from tests.official_data import write_official

FOLDER = Path(__file__).parent.parent / "examples" / "experiments"
FILES = {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}
README = (FOLDER / "README.md").read_text(encoding="utf-8")

OP_RAG_SETS = ("en_qa", "en_mc")
BOTH = ("rank", "source")
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
NINE = ("narrativeqa", "qasper", "multifieldqa", "hotpotqa", "2wikimqa", "musique", "qmsum", "en_qa", "en_mc")
SIX = ("stuff", "map_reduce", "map_rerank", "refine", "step_down", "reciprocal")
FIVE = (1, 2, 3, 4, 5)

# By file: what its cells differ in, and the cells.
CELLS = {
    "op_rag_table_1": (
        ("method", "data", "model", "splitter", "chunk_size", "k", "order", "source_token_budget"),
        {
            *product(["stuff"], OP_RAG_SETS, ["llama_70b"], ["tokens"], [128], (128, 192, 384), ["source"], [None]),
            *product(
                ["long_context"], OP_RAG_SETS, ("llama_70b", "gpt_4o"), ["tokens"], [128], [1], ["source"], [117_000]
            ),
            *product(["long_context"], OP_RAG_SETS, ["gemini_15_pro"], ["tokens"], [128], [1], ["source"], [None]),
            *product(["self_route"], OP_RAG_SETS, ["gpt_4o"], ["words"], [300], [5], ["rank"], [117_000]),
            *product(["self_route"], OP_RAG_SETS, ["gemini_15_pro"], ["words"], [300], [5], ["rank"], [None]),
        },
    ),
    "op_rag_figure_3": (
        ("data", "model", "k"),
        set(product(OP_RAG_SETS, ("llama_8b", "llama_70b"), (8, 16, 32, 64, 128, 192, 256, 384, 512))),
    ),
    "op_rag_figure_4": (
        ("data", "k", "order"),
        set(product(OP_RAG_SETS, (8, 16, 32, 64, 128, 192, 256), BOTH)),
    ),
    "dos_rag_en_mc": (
        ("model", "token_budget", "order", "repeat"),
        set(product(("gpt_4o_mini", "gpt_4o"), (1_500, 5_000, 10_000, 20_000, 30_000, 40_000), BOTH, FIVE)),
    ),
    "dos_rag_quality": (
        ("method", "token_budget", "k", "order", "repeat"),
        {
            *product(["stuff"], (500, 1_000, 1_500, 2_000, 4_000, 8_000), [None], BOTH, FIVE),
            *product(["long_context"], [None], [1], ["source"], FIVE),
        },
    ),
    "dos_rag_narrativeqa": (
        ("token_budget", "order"),
        set(product((1_500, 5_000, 10_000, 20_000, 30_000, 40_000), BOTH)),
    ),
    "self_route": (
        ("method", "data", "model", "splitter", "embedder", "source_token_budget"),
        {
            (*cell[:2], model, *cell[2:], budget if cell[0] != "stuff" else None)
            for model, budget in (("gemini_15_pro", None), ("gpt_4o", 120_000), ("gpt_35_turbo", 15_000))
            for cell in (
                *product(("stuff", "self_route"), NINE, ("words", "tokens"), ("contriever", "dragon")),
                *product(["long_context"], NINE, ["words"], ["contriever"]),
            )
        },
    ),
    "sakar_emekci": (
        ("method", "store", "embedder", "model", "data", "similarity_threshold", "redundancy_threshold"),
        {
            (*cell, *thresholds)
            for cell in product(
                SIX,
                ("chroma", "faiss", "pinecone"),
                ("openai", "bge"),
                ("gpt_4o_mini", "llama_8b"),
                ("sec_10q", "llama2", "medqa"),
            )
            for thresholds in (*product(THRESHOLDS, THRESHOLDS), (None, None))
        },
    ),
}
# What all cells of a file have in common.
PAPER_CHUNKS = {"splitter": "tokens", "chunk_size": 128, "chunk_overlap": 0, "retriever": "dense", "store": "index"}
DOS_CHUNKS = {"splitter": "recursive", "chunk_size": 100, "chunk_overlap": 0, "retriever": "dense", "store": "index"}
COMMON = {
    "op_rag_table_1": {"chunk_overlap": 0, "embedder": "bge", "repeat": 1},
    "op_rag_figure_3": {**PAPER_CHUNKS, "method": "stuff", "order": "source", "separator": "", "embedder": "bge"},
    "op_rag_figure_4": {**PAPER_CHUNKS, "method": "stuff", "model": "llama_70b", "separator": "", "embedder": "bge"},
    "dos_rag_en_mc": {**DOS_CHUNKS, "method": "stuff", "k": None, "stitch": False, "separator": "\n\n"},
    "dos_rag_quality": {**DOS_CHUNKS, "model": "gpt_4o_mini"},
    "dos_rag_narrativeqa": {**DOS_CHUNKS, "method": "stuff", "model": "gpt_4o_mini", "stitch": False, "repeat": 1},
    "self_route": {"chunk_size": 300, "chunk_overlap": 0, "k": 5, "order": "rank"},
    "sakar_emekci": {"splitter": "recursive", "chunk_size": 1_000, "chunk_overlap": 100, "k": 20, "order": "rank"},
}
FIGURES = {
    "op_rag_table_1": "34.26 32.36 43.08 71.62 78.42 85.57 34.95 37.51 77.29 76.86 44.43 45.45 47.25 84.72 88.65 85.59",
    "op_rag_figure_3": "16K 48K 44.43 45.45 47.25 84.72 88.65 85.59",
    "op_rag_figure_4": "38.40 44.43 81.22 88.65 44.53",
    "dos_rag_en_mc": "69.9 68.9 76.0 84.1 77.2 81.6 76.2 75.6 87.8 93.1",
    "dos_rag_quality": "66.5 68.2 76.6 81.2 81.0",
    "dos_rag_narrativeqa": "15.1 16.3 19.4 22.1",
    "self_route": "82 300 34.95 37.51 77.29 76.86",
    "sakar_emekci": "91 87 86 85 14.29 34.33 7.2 70.5 71.7 71.3 18.63 9.73 8.99 12.5 18.6 8.04 4.7 7.89 7.69 7.59 17.44 "
    "0.8/0.8 0.7/0.8 0.5/0.6 5.08 9.18 15.7 23,625 112",
}
PROVIDERS = re.compile(r"(openai|google_genai):\S+")

every_file = pytest.mark.parametrize("name", FILES)


@pytest.fixture
def experiment(name, tmp_path):
    """A file as it is, with data where it says; tokenizers must be fetched, so contexts are counted by another one."""
    place = shutil.copy(FILES[name], tmp_path)
    write_official(tmp_path, tables(name)["data"])
    return read_experiment(place, changes={"count_tokens": "words"})


def tables(name):
    return tomllib.loads(FILES[name].read_text(encoding="utf-8"))


def offline(experiment, *, first=False):
    """The experiment with stand-ins for what must be fetched, served or paid for; all else stays.

    Args:
        experiment: The experiment.
        first: Keep the first two values of each axis of a grid, and one question of each set.
    """
    stores = {"in_memory" if store in ("chroma", "faiss") else store for grid in experiment.grid for store in grid.get("store", ())}
    grid = [{**one, **({"store": sorted(stores)} if "store" in one else {})} for one in experiment.grid]
    return replace(
        experiment,
        models={name: ModelSpec(reply_to, f"stand-in for {name}", retries=0) for name in experiment.models},
        embedders={name: EmbedderSpec(Words(name), name) for name in experiment.embedders},
        score_embedder=EmbedderSpec(Words("score"), "score"),
        stores=dict.fromkeys(experiment.stores, "tests.compare.stores.made_up:plain"),
        grid=[{name: values[:2] for name, values in one.items()} for one in grid] if first else grid,
        data={name: data.sample(1) if first else data for name, data in experiment.data.items()},
    )


def cells_of(experiment, names):
    return [tuple(cell.values()[name] for name in names) for cell in experiment.cells().cells]


def comments(name):
    lines = FILES[name].read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.startswith("#"))


def test_every_file_is_covered():
    assert set(FILES) == set(CELLS) == set(COMMON) == set(FIGURES)


@every_file
def test_its_cells_are_those_of_the_paper(name, experiment):
    names, expected = CELLS[name]
    found = cells_of(experiment, names)
    assert set(found) == expected
    # Nothing else varies.
    assert len(found) == len(expected)
    common = cells_of(experiment, tuple(COMMON[name]))
    assert set(common) == {tuple(COMMON[name].values())}
    assert experiment.cells().impossible == {}
    assert experiment.cells().repeated == (len(found) - len(expected))


def test_the_sum_behind_23625_is_that_of_the_file(tmp_path):
    cells = CELLS["sakar_emekci"][1]
    with_thresholds = [cell for cell in cells if cell[-1] is not None]
    pairs = {cell[2:4] for cell in cells}
    assert 23_625 * len(pairs) * 6 == 15 * 7 * len(with_thresholds)


def test_context_lengths_are_those_of_the_figures():
    assert [128 * k // 1024 for k in (128, 192, 256, 384)] == [16, 24, 32, 48]


@every_file
def test_it_is_planned(name, experiment):
    plan = make_plan(offline(experiment, first=name == "sakar_emekci"))
    assert plan.failures == {}
    assert plan.impossible == {}
    assert plan.cells * 2 >= plan.units // 4 >= 1
    assert plan.units == sum(len(experiment.data[cell.data].questions) for cell in experiment.cells().cells) or (
        name == "sakar_emekci"
    )
    assert set(plan.models) == set(experiment.models)
    assert all(model.calls for model in plan.models.values())
    assert plan.limits.money is None


@every_file
def test_it_runs(name, experiment, tmp_path):
    small = offline(experiment, first=True)
    report = run(small, tmp_path / "results.db")
    assert report.complete, report
    assert report.answered == len(small.cells().cells)
    answered = rows(tmp_path / "results.db", "SELECT data, count(*) FROM results WHERE status = 'answered' GROUP BY data")
    assert {data for data, _ in answered} == set(small.data)
