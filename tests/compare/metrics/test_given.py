import pytest

from oprag import OptionError
from oprag.compare.metrics import choice_accuracy, exact_match, rouge_l, token_f1

METRICS = [token_f1, exact_match, rouge_l, choice_accuracy]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("prediction", [None, 3, b"bear", ["bear"], float("nan")])
def test_a_prediction_is_a_string(metric, prediction):
    with pytest.raises(OptionError, match="prediction must be a string, got"):
        metric(prediction, ["bear", "A"])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ("bear", "must be a list or tuple of strings, got 'bear'"),
        (None, "must be a list or tuple of strings, got None"),
        ({"bear"}, "must be a list or tuple of strings"),
        ([], "must hold at least one string, got none"),
        ((), "leave out a question without any"),
        (["bear", None], "must be a string, got None"),
        ([["bear", "A"]], "must be a string, got"),
    ],
)
def test_answers_are_strings_at_least_one(metric, answers, message):
    with pytest.raises(OptionError, match=message) as caught:
        metric("bear", answers)
    assert ("labels" if metric is choice_accuracy else "answers") in str(caught.value)
