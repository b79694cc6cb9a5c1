"""Fields of questions: those of the data, and where the evidence is."""

import pytest

from oprag.compare.analysis.fields import MAX_FIELDS, question_fields
from oprag.compare.db.records import QuestionRecord
from tests.compare.analysis.matrices import made, results_of


def question(about=None, evidence=()):
    return QuestionRecord("key", "book", "q1", "Who?", ("Ann",), (), None, evidence, ("a", "b"), about or {})


@pytest.mark.parametrize(
    ("evidence", "spread"),
    [
        ([("a", 0, 10)], False),
        ([("a", 0, 10), ("a", 2010, 2020)], False),
        ([("a", 0, 10), ("a", 2011, 2020)], True),
        # Each is near the next one, and the first far from the last.
        ([("a", 3000, 3010), ("a", 0, 10), ("a", 1500, 1510)], True),
        ([("a", 0, 10), ("b", 0, 10)], True),
    ],
)
def test_evidence_is_spread_over_documents_or_far_apart(evidence, spread):
    assert question_fields(question(evidence=evidence)) == {"evidence_spans": len(evidence), "spread": spread}


def test_a_field_of_the_data_wins():
    fields = question_fields(question({"spread": "by hand", "type": "who"}, [("a", 0, 10)]))
    assert fields == {"evidence_spans": 1, "spread": "by hand", "type": "who"}


def test_names_of_axes_metrics_costs_and_columns_are_told_apart():
    fields = question_fields(question({"order": 1, "token_f1": 2, "answer": 3, "kind": 4}), taken=("token_f1",))
    assert fields == {"question_order": 1, "question_token_f1": 2, "question_answer": 3, "kind": 4}


def test_only_so_many_plain_values_are_fields():
    about = {"nested": {"x": 1}, "long": "x" * 300, "empty": "", "nan": float("nan"), "half": 0.5, "yes": True}
    assert question_fields(question(about)) == {"half": 0.5, "yes": True}
    many = {f"field {number}": number for number in range(60)}
    assert len(question_fields(question(many))) == MAX_FIELDS
    matrix = results_of(made({"a": 1.0, "b": 0.0}), about={"a": {"x": 1}, "b": {"y": 2, "x": 3, **many}})
    assert matrix.field_names[:3] == ("x", "y", "field 0")
    assert len(matrix.field_names) == MAX_FIELDS


def test_a_matrix_has_them():
    matrix = results_of(made({"a": 1.0, "b": 0.0}), about={"a": {"type": "who", "tokens": 3}})
    assert matrix.fields == [{"type": "who", "question_tokens": 3}, {}]
