import json
from dataclasses import replace

import pytest

from oprag import ExperimentError, OptionError
from oprag.compare import ModelSpec, read_data, run
from oprag.compare.sweep.experiment import sweep_experiment
from oprag.compare.sweep.result import read_sweep
from oprag.profile import read_profile, write_profile
from tests.compare.ledgers import reader, thorough, write_ledgers

WORDS = {"splitter": "words", "chunk_size": 14}
BUDGETS = [20, 60, 150, 300, 900]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    book, asked = write_ledgers(folder, questions=80)
    experiment = sweep_experiment(
        read_data(asked, documents=book),
        budgets=BUDGETS,
        model=ModelSpec(reader(), name="reader"),
        grid={"splitter": "words", "chunk_size": 14},
    )
    assert run(experiment, folder / "sweep.db").complete
    return folder / "sweep.db", experiment


def test_an_inverted_u_has_its_sweet_spot(swept):
    sweep = read_sweep(swept[0], "sweep", "token_f1")
    by_order = {curve.values["order"]: curve for curve in sweep.curves}
    assert list(by_order) == ["source", "rank", "random"]
    source = by_order["source"]
    means = [point.summary.mean or 0.0 for point in source.points]
    # Up, and down again where the context is too long for the model.
    assert means[0] < means[1] < max(means)
    assert means[-1] == 0
    assert source.sweet_spot is not None
    assert means.index(max(means)) == [point.value for point in source.points].index(source.sweet_spot.value)
    # The model needs the ledgers in their sequence.
    assert (by_order["rank"].highest.summary.mean or 0.0) < max(means)


def test_the_chosen_setting_is_a_profile_that_gives_the_same_contexts(swept, tmp_path):
    sweep = read_sweep(swept[0], "sweep", "token_f1")
    assert sweep.chosen.values["order"] == "source"
    assert 150 <= sweep.chosen.values["token_budget"] <= 300
    path = tmp_path / "oprag.toml"
    write_profile(sweep.profile, path)
    profile = read_profile(path)
    context_options = profile.as_context_options()
    assert (context_options.order, context_options.token_budget) == ("source", sweep.chosen.values["token_budget"])
    assert profile.method["method"] == "stuff"
    assert profile.about["questions"] == 80
    assert "splitter=words, chunk_size=14" in profile.about["retrieval"]
    # Not the number of candidates of the whole sweep, but what this budget needed.
    assert context_options.k is not None
    assert 3 <= context_options.k < swept[1].grid_cells.cells[0].context_options.k


def test_budgets_that_hold_the_whole_book_are_one_point(tmp_path):
    book, asked = write_ledgers(tmp_path, questions=6)
    experiment = sweep_experiment(
        read_data(asked, documents=book), budgets=[900, 1_800, 3_600], grid={"splitter": "words", "chunk_size": 14}
    )
    run(experiment, tmp_path / "sweep.db")
    sweep = read_sweep(tmp_path / "sweep.db", "sweep", "evidence_coverage")
    # The whole book fits from 900 on: all of them are equal, in every order.
    assert sweep.chosen.values["token_budget"] == 900
    assert sweep.chosen.values["order"] == "source"
    assert [[point.value for point in curve.points] for curve in sweep.curves] == [[900]] * 3
    assert "nothing to compare" in sweep.conclusions["source", "rank", "random"]
    (remark,) = sweep.remarks
    assert remark == (
        "token_budget=1800, 3600 (source, rank, random) is not another point of the curve: it has the same contexts as "
        "token_budget=900, which contains all chunks"
    )
    assert sweep.profile.method == {}


def test_budgets_with_the_same_chunks_are_one_point_though_there_are_more(tmp_path):
    book, asked = write_ledgers(tmp_path, questions=6)
    experiment = sweep_experiment(
        read_data(asked, documents=book), budgets=[60, 61, 150], orders=["source"], grid=WORDS | {"stitch": False}
    )
    run(experiment, tmp_path / "sweep.db")
    sweep = read_sweep(tmp_path / "sweep.db", "sweep", "evidence_coverage")
    (curve,) = sweep.curves
    assert [point.value for point in curve.points] == [60, 150]
    assert sweep.remarks == [
        "token_budget=61 (source) is not another point of the curve: it has the same contexts as token_budget=60"
    ]


def test_of_two_documents_one_may_fit_whole(tmp_path):
    book, asked = write_ledgers(tmp_path, questions=4)
    data = read_data(asked, documents=book)
    ((name, text),) = data.documents.items()
    first = data.questions[0].evidence[0]
    short = replace(data.questions[0], id="short", documents=("short",), evidence=(first._replace(document="short"),))
    documents = {name: text, "short": str(text)[: first.end]}
    both = replace(data, documents=documents, questions=(*data.questions, short))
    run(sweep_experiment(both, budgets=[450, 500], orders=["source"], grid=WORDS), tmp_path / "sweep.db")
    sweep = read_sweep(tmp_path / "sweep.db", "sweep", "evidence_coverage")
    (curve,) = sweep.curves
    assert [point.value for point in curve.points] == [450, 500]
    assert sweep.remarks == []


@pytest.mark.parametrize(
    ("grid", "wanted"),
    [
        # Two sentences of the best ranked are needed, and half as many more are given: 2 * 1.5 + 1.
        ({"k": 30}, {"k": 4}),
        # There were no more, and none more are given.
        ({"k": 3}, {"k": 3}),
        ({"k": 2}, {"k": 2}),
        ({"k": 3, "max_candidates": 3}, {"k": 3, "max_candidates": 3}),
        ({"k": "none", "max_candidates": 3}, {"k": 3, "max_candidates": 3}),
    ],
)
def test_the_profile_has_no_more_candidates_than_there_were(tmp_path, grid, wanted):
    book, asked = write_ledgers(tmp_path, questions=6)
    experiment = sweep_experiment(
        read_data(asked, documents=book), budgets=[45], orders=["source"], grid=WORDS | {"stitch": False} | grid
    )
    run(experiment, tmp_path / "sweep.db")
    profile = read_sweep(tmp_path / "sweep.db", "sweep", "evidence_coverage").profile
    assert {name: value for name, value in profile.context.items() if name in ("k", "max_candidates")} == wanted
    assert profile.as_context_options().token_budget == 45


def test_without_scores_there_is_nothing_to_choose(swept):
    with pytest.raises(ExperimentError, match="no answer with a score of rouge_l"):
        read_sweep(swept[0], "sweep", "rouge_l")
    with pytest.raises(ExperimentError, match="other"):
        read_sweep(swept[0], "other", "token_f1")


def count_characters(text: str) -> int:
    return len(text)


def test_a_counter_of_the_users_own_is_told_and_not_in_the_profile(tmp_path):
    book, asked = write_ledgers(tmp_path, questions=3)
    experiment = sweep_experiment(read_data(asked, documents=book), budgets=[400], count_tokens=count_characters)
    run(experiment, tmp_path / "sweep.db")
    profile = read_sweep(tmp_path / "sweep.db", "sweep", "evidence_coverage").profile
    assert "count_tokens" not in profile.context
    assert "test_result:count_characters, which cannot be stored in a profile" in profile.about["count_tokens"]


def test_the_control_is_not_deployed_and_ties_go_to_source(tmp_path):
    book, asked = write_ledgers(tmp_path, questions=6)
    for orders, chosen in (
        (["random", "rank", "source"], "source"),
        (["random", "reverse_rank"], "reverse_rank"),
        (["random"], "random"),
    ):
        # Not stitched, the whole book is as many tokens in any order.
        grid = WORDS | {"stitch": False}
        experiment = sweep_experiment(
            read_data(asked, documents=book), budgets=[900, 1_800], orders=orders, grid=grid, name=chosen
        )
        run(experiment, tmp_path / "sweep.db")
        sweep = read_sweep(tmp_path / "sweep.db", chosen, "evidence_coverage")
        assert (sweep.chosen.values["order"], sweep.chosen.values["token_budget"]) == (chosen, 900)
        assert sweep.profile.context["order"] == chosen


def test_where_a_model_answers_its_tokens_are_counted(tmp_path):
    book, asked = write_ledgers(tmp_path, questions=20)
    experiment = sweep_experiment(
        read_data(asked, documents=book),
        budgets=[40, 300, 900],
        orders=["source"],
        model=ModelSpec(thorough(), name="thorough"),
        method="self_route",
        grid=WORDS,
    )
    run(experiment, tmp_path / "sweep.db")
    sweep = read_sweep(tmp_path / "sweep.db", "sweep", "token_f1")
    taken = {
        row.values["token_budget"]: row.per_answer["input_tokens"] + row.per_answer["output_tokens"]
        for row in sweep.results.settings
    }
    # Whatever is not in the context is in the whole book, which is read where the budget is small.
    assert {row.scores["token_f1"].mean for row in sweep.results.settings} == {1.0}
    assert taken[300] < taken[40]
    assert sweep.chosen.values["token_budget"] == 300


def test_other_sweeps_in_the_file_have_no_part_in_the_profile(tmp_path):
    book, asked = write_ledgers(tmp_path)
    data = read_data(asked, documents=book)

    def profile(name, file, questions):
        few = replace(data, questions=questions)
        run(sweep_experiment(few, budgets=[300], orders=["source"], grid=WORDS | {"k": 30}, name=name), tmp_path / file)
        return read_sweep(tmp_path / file, name, "evidence_coverage").profile

    # Short chunks of a few questions fit where others need more.
    sizes = {
        number: profile(str(number), "each.db", data.questions[number : number + 1]).context["k"] for number in range(4)
    }
    least = min(sizes, key=sizes.__getitem__)
    alone = profile("alone", "alone.db", data.questions[least : least + 1])
    profile("all", "both.db", data.questions)
    both = profile("alone", "both.db", data.questions[least : least + 1])
    assert alone == both


def test_budgets_are_filled_where_chunks_are_short(tmp_path):
    # A token of the embedder is a digit here, which is no more than a quarter of one of the reader's.
    rows = [" ".join(f"{row * column % 977 / 10:.1f}" for column in range(12)) for row in range(600)]
    (tmp_path / "table.txt").write_text("\n".join(rows), encoding="utf-8")
    start = len("\n".join(rows[:300])) + 1
    asked = {"question": "What is 30.5?", "evidence": [{"start": start, "end": start + len(rows[300])}]}
    (tmp_path / "asked.jsonl").write_text(json.dumps(asked), encoding="utf-8")
    data = read_data(tmp_path / "asked.jsonl", documents=tmp_path / "table.txt")
    run(sweep_experiment(data, budgets=["4k"], orders=["rank"]), tmp_path / "sweep.db")
    sweep = read_sweep(tmp_path / "sweep.db", "sweep", "evidence_coverage")
    assert 0.95 * 4_096 < sweep.chosen.per_answer["context_tokens"] <= 4_096
    assert sweep.remarks == []


def test_candidates_that_run_out_are_told(tmp_path):
    book, asked = write_ledgers(tmp_path, questions=5)
    experiment = sweep_experiment(
        read_data(asked, documents=book),
        budgets=[60, 300, 5_000],
        orders=["source", "random"],
        seeds=2,
        grid=WORDS | {"k": 6},
    )
    run(experiment, tmp_path / "sweep.db")
    sweep = read_sweep(tmp_path / "sweep.db", "sweep", "evidence_coverage")
    said = "({}) is not filled: the 6 best-ranked chunks all fit it in {} answers, and there are more; use a larger "
    assert [remark.partition("=")[2] for remark in sweep.remarks[:2]] == [
        f"{budget} {said.format('source, random', '5 of 5')}k or larger chunks to fill it" for budget in (300, 5_000)
    ]
    for grid, number in (({"k": 2, "max_candidates": 100}, 2), ({"k": "none", "max_candidates": 3}, 3)):
        few = sweep_experiment(
            read_data(asked, documents=book), budgets=[5_000], orders=["source"], grid=WORDS | grid, name=f"{number}"
        )
        run(few, tmp_path / "sweep.db")
        (remark,) = read_sweep(tmp_path / "sweep.db", f"{number}", "evidence_coverage").remarks
        assert (
            f"is not filled: the {number} best-ranked chunks all fit it in 5 of 5 answers, and there are more" in remark
        )
    # What repeats another one is left out by its threshold, and nothing is behind it.
    alike = sweep_experiment(
        read_data(asked, documents=book),
        budgets=[5_000],
        orders=["source"],
        grid=WORDS | {"redundancy_threshold": 0.5},
        name="alike",
    )
    run(alike, tmp_path / "sweep.db")
    assert read_sweep(tmp_path / "sweep.db", "alike", "evidence_coverage").remarks == []
    # The whole book has no more to give.
    whole = sweep_experiment(read_data(asked, documents=book), budgets=[300, 5_000], grid=WORDS, name="whole")
    run(whole, tmp_path / "sweep.db")
    assert read_sweep(tmp_path / "sweep.db", "whole", "evidence_coverage").remarks == []


def test_questions_asked_twice_show_no_more_than_once(tmp_path):
    book, asked = write_ledgers(tmp_path, questions=12)
    data = read_data(asked, documents=book)
    again = [replace(question, id=f"again {question.id}") for question in data.questions]
    curves = []
    for name, questions in (("once", data.questions), ("twice", [*data.questions, *again])):
        experiment = sweep_experiment(
            replace(data, questions=tuple(questions)), budgets=[60, 100, 150], orders=["source"], grid=WORDS, name=name
        )
        run(experiment, tmp_path / "sweep.db")
        (curve,) = read_sweep(tmp_path / "sweep.db", name, "evidence_coverage").curves
        curves.append(curve)
    for once, twice in zip(curves[0].points, curves[1].points, strict=True):
        assert twice.summary.n == 2 * once.summary.n
        assert (twice.summary.low, twice.summary.high) == pytest.approx((once.summary.low, once.summary.high))
    assert [one.difference.significant for one in curves[0].others] == [
        one.difference.significant for one in curves[1].others
    ]


def test_continuity_is_swept_beside_orders(tmp_path):
    book, asked = write_ledgers(tmp_path, questions=20)
    experiment = sweep_experiment(
        read_data(asked, documents=book), budgets=[60, 150], orders=["source", "rank"], continuity=[0, 0.5], grid=WORDS
    )
    assert run(experiment, tmp_path / "sweep.db").complete
    sweep = read_sweep(tmp_path / "sweep.db", "sweep", "evidence_coverage")
    assert len(sweep.curves) == 4
    names = {name for together in sweep.conclusions for name in together}
    assert names == {"source", "rank", "source, continuity 0.5", "rank, continuity 0.5"}
    assert "Does continuity matter?" in {one.question for one in sweep.points.verdicts("evidence_coverage")}
    assert sweep.profile.context.get("continuity", 0.0) == sweep.chosen.values["continuity"]
    with pytest.raises(ExperimentError, match="continuity must be"):
        sweep_experiment(read_data(asked, documents=book), continuity=[2], grid=WORDS)
    with pytest.raises(OptionError, match="continuity must be a list"):
        sweep_experiment(read_data(asked, documents=book), continuity=0.3, grid=WORDS)  # type: ignore[arg-type]
