import pytest

from oprag import ExperimentError
from oprag.compare import ModelSpec, read_data, run
from oprag.compare.sweep import sweep_experiment
from oprag.compare.sweep_choice import read_sweep
from oprag.profile import read_profile, write_profile
from tests.compare.ledgers import reader, write_ledgers

BUDGETS = [20, 60, 150, 300, 900]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    book, asked = write_ledgers(folder)
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
    assert source.best is not None
    assert means.index(max(means)) == [point.value for point in source.points].index(source.best.value)
    # The model needs the ledgers in their sequence.
    assert (by_order["rank"].highest.summary.mean or 0.0) < max(means)


def test_the_chosen_setting_is_a_profile_that_gives_the_same_contexts(swept, tmp_path):
    sweep = read_sweep(swept[0], "sweep", "token_f1")
    assert sweep.chosen.values["order"] == "source"
    assert 150 <= sweep.chosen.values["token_budget"] <= 300
    path = tmp_path / "oprag.toml"
    write_profile(sweep.profile, path)
    profile = read_profile(path)
    assembly = profile.as_assembly()
    assert (assembly.order, assembly.token_budget) == ("source", sweep.chosen.values["token_budget"])
    assert profile.method["method"] == "stuff"
    assert profile.about["questions"] == 40
    assert "splitter=words, chunk_size=14" in profile.about["retrieval"]
    # Not the number of candidates of the whole sweep, but what this budget needed.
    assert assembly.k is not None
    assert 3 <= assembly.k < swept[1].cells().cells[0].assembly.k


def test_where_nothing_is_shown_the_cheapest_of_the_near_ones_is_taken(tmp_path):
    book, asked = write_ledgers(tmp_path, questions=6)
    experiment = sweep_experiment(
        read_data(asked, documents=book), budgets=[900, 1_800, 3_600], grid={"splitter": "words", "chunk_size": 14}
    )
    run(experiment, tmp_path / "sweep.db")
    sweep = read_sweep(tmp_path / "sweep.db", "sweep", "evidence_coverage")
    # The whole book fits from 900 on: all of them are equal, in every order.
    assert sweep.chosen.values["token_budget"] == 900
    assert sweep.chosen.values["order"] == "source"
    assert "within one standard error" in sweep.why
    assert list(sweep.conclusions) == [("source", "rank", "random")]
    assert "flat" in sweep.conclusions["source", "rank", "random"]
    assert sweep.profile.method == {}


def test_without_scores_there_is_nothing_to_choose(swept):
    with pytest.raises(ExperimentError, match="no answer with a score of rouge_l"):
        read_sweep(swept[0], "sweep", "rouge_l")
    with pytest.raises(ExperimentError, match="other"):
        read_sweep(swept[0], "other", "token_f1")


def count_characters(text: str) -> int:
    return len(text)


def test_a_counter_of_the_users_own_is_told_and_not_in_the_profile(tmp_path):
    book, asked = write_ledgers(tmp_path, questions=3)
    experiment = sweep_experiment(
        read_data(asked, documents=book), budgets=[400], count_tokens="tests.compare.test_sweep_choice:count_characters"
    )
    run(experiment, tmp_path / "sweep.db")
    profile = read_sweep(tmp_path / "sweep.db", "sweep", "evidence_coverage").profile
    assert "count_tokens" not in profile.assembly
    assert "test_sweep_choice:count_characters, which no profile can name" in profile.about["count_tokens"]
