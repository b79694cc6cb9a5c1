"""The setting that is worth deploying, by the one-standard-error rule."""

import pytest

from oprag.compare.analysis.best import choose_economical
from tests.compare.analysis.matrices import frame, made


def scored(scores, order, budget, tokens):
    by_question = {str(number): score for number, score in enumerate(scores)}
    return made(by_question, asked=len(scores), tokens=tokens, order=order, token_budget=budget)


def chosen_of(*cells, clusters=None):
    results = frame(*cells, clusters=clusters)
    setting, why = choose_economical(results.settings, "token_f1")
    return (setting.values["order"], setting.values["token_budget"]), why


NOISE = [0.01 * (number % 5) for number in range(30)]
HIGH = [0.6 + noise for noise in NOISE]


def test_the_fewest_tokens_within_one_standard_error_are_taken():
    # Behind by 0.004, with a standard error of 0.018 over the questions.
    close = [score - 0.004 + 0.1 * (-1) ** number for number, score in enumerate(HIGH)]
    choice, why = chosen_of(scored(HIGH, "source", 900, 900), scored(close, "source", 300, 300))
    assert choice == ("source", 300)
    assert why == (
        "the fewest tokens of the 2 settings within one standard error (of the paired difference) of the highest "
        "token_f1 (0.620 [0.615, 0.625] at token_budget=900)"
    )
    far = [score - 0.03 + 0.1 * (-1) ** number for number, score in enumerate(HIGH)]
    choice, why = chosen_of(scored(HIGH, "source", 900, 900), scored(far, "source", 300, 300))
    assert choice == ("source", 900)
    assert why == "the highest token_f1"


def test_questions_of_one_document_make_a_larger_error():
    # Behind by 0.03 in three documents that differ much, and in each of them by the same in every question.
    close = [score - 0.03 + 0.1 * (number // 10 - 1) for number, score in enumerate(HIGH)]
    cells = scored(HIGH, "source", 900, 900), scored(close, "source", 300, 300)
    assert chosen_of(*cells)[0] == ("source", 900)
    assert chosen_of(*cells, clusters={str(number): number // 10 for number in range(30)})[0] == ("source", 300)


@pytest.mark.parametrize(("tokens", "order"), [(303, "source"), (304, "rank")])
def test_settings_with_as_many_tokens_to_one_part_in_a_hundred_are_alike(tokens, order):
    # A model writes three tokens more.
    choice, why = chosen_of(scored(HIGH, "rank", 300, 300 - 3), scored(HIGH, "source", 300, tokens - 3))
    assert choice == (order, 300)
    assert ("among those within 1 %" in why) is (order == "source")


def test_a_tie_of_one_question_goes_to_source():
    choice, why = chosen_of(scored([1.0], "rank", 200, 190), scored([1.0], "source", 200, 190))
    assert choice == ("source", 200)
    choice, why = chosen_of(scored([1.0], "rank", 200, 190), scored([0.5], "source", 200, 190))
    assert choice == ("rank", 200)
    assert why == "the highest token_f1"


def test_a_control_is_not_chosen():
    low = [score - 0.3 for score in HIGH]
    assert chosen_of(scored(low, "source", 300, 300), scored(HIGH, "random", 300, 300))[0] == ("source", 300)
    assert chosen_of(scored(HIGH, "random", 300, 300))[0] == ("random", 300)
