"""An order that is called known is right, and nothing wrong is silent, whatever happened to a store."""

from collections import Counter
from types import SimpleNamespace

import pytest

from tests.core.positions.histories import HISTORIES, STYLES, TEXTS, make_case
from tests.core.positions.judging import FAULTS, KNOWN, LIED, RIGHT, SILENT, UNSTABLE, judge

# An edited chunk or a copy at the end, on the last page: only its text, which is alike or short, would tell.
UNTOLD = {61, 297}
CASES = [[make_case(seed) for seed in range(start, start + 60)] for start in range(0, 480, 60)]


@pytest.mark.parametrize("cases", CASES, ids=lambda cases: f"seed {cases[0].seed}")
def test_known_is_right_and_wrong_is_said(cases):
    """`python -m benchmarks.histories --seed N` prints a case."""
    found = {
        case.seed: [fault for fault in FAULTS if outcomes[fault]] for case in cases for _, outcomes in [judge(case)]
    }
    assert {seed: faults for seed, faults in found.items() if faults and seed not in UNTOLD} == {}


def order(keys, certainty, *doubts):
    return SimpleNamespace(
        places=[SimpleNamespace(key=key) for key in keys], certainty=certainty, doubts_among=lambda subset: doubts
    )


def by_truth(case, chunks):
    places = {chunk.id: entry.piece.place for chunk, entry in zip(case.chunks, case.entries, strict=True)}
    return [(places[chunk.id],) for chunk in chunks]


def by_rank(case, chunks):
    return [(chunk.rank,) for chunk in chunks]


def unknown(case, chunks):
    return [()] * len(chunks)


@pytest.mark.parametrize(
    ("keys", "about", "expected"),
    [
        (by_truth, ["known"], {RIGHT}),
        (by_rank, ["known"], {RIGHT, LIED, KNOWN, UNSTABLE}),
        (by_rank, ["assumed"], {RIGHT, LIED, SILENT, UNSTABLE}),
        (by_rank, ["unknown", "a doubt"], {"right, doubted", "wrong, said"}),
        (unknown, ["unknown"], {SILENT}),
    ],
)
def test_the_judge_sees_each_fault(keys, about, expected):
    judged = [judge(case, lambda case, chunks: order(keys(case, chunks), *about)) for case in CASES[0] + CASES[1]]
    outcomes = sum((one for _, one in judged), Counter())
    assert set(+outcomes) - {LIED} == expected - {LIED}
    assert all(outcomes[fault] > 20 for fault in expected.intersection(FAULTS))


def test_all_kinds_of_cases_are_made():
    made = [case for cases in CASES for case in cases]
    assert {case.style for case in made} == set(STYLES)
    assert {name for case in made for name in case.history.split(" + ")} == set(HISTORIES)
    assert {case.kind for case in made} == set(TEXTS)
    assert {entry.lies for case in made for entry in case.entries} == {True, False}
