"""The scores of a setting are the means over its cells."""

from oprag.compare.reading import CellAnswers, KeptAnswer
from oprag.compare.setting import settings_of
from oprag.compare.spec.axes import axes

DEFAULTS = {name: axis.default for name, axis in axes().items()} | {"data": "book", "model": "m", "embedder": "local"}


def cell(answers=(), **values):
    kept = {
        question: KeptAnswer(score is None, 1, 10, 2, 0, 5, 8, {} if score is None else {"token_f1": score})
        for question, score in dict(answers).items()
    }
    return CellAnswers(str(values), {**DEFAULTS, **values}, 3, kept)


def test_scores_are_averaged_where_all_cells_have_one():
    first = cell({"a": 0.0, "b": 1.0, "c": 0.5}, order="random", seed=1)
    second = cell({"a": 1.0, "b": 1.0, "c": None}, order="random", seed=2)
    (setting,) = settings_of([first, second])
    assert setting.scores("token_f1") == {"a": 0.5, "b": 1.0}
    assert setting.scores("rouge_l") == {}


def test_equal_scores_have_exactly_their_own_mean():
    scores = {str(number): number / 7 for number in range(50)}
    (setting,) = settings_of(cell(scores, order="random", seed=seed) for seed in range(3))
    assert setting.scores("token_f1") == scores
