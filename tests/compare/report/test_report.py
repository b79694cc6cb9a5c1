"""The report has what the results file says, where there is something to say, and opens offline everywhere."""

import base64
import hashlib
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jinja2")

from oprag.compare import write_report
from oprag.compare.analysis.differences import effects_of
from oprag.compare.analysis.settings import difference_text
from oprag.compare.analysis.summary import ranked
from oprag.compare.providers.specs import ModelSpec
from oprag.compare.report.questions import compared
from oprag.compare.report.tables import slices
from oprag.compare.results import Results
from oprag.compare.running.run import run
from tests.compare.analysis.matrices import frame, made
from tests.compare.helpers import RecordingModel, experiment, keepers, rows
from tests.compare.report.parsed import page_of

FULL: list[dict[str, Any]] = [
    {
        "chunk_size": 16,
        "order": ["source", "rank"],
        "k": [1, 4, 16],
        "similarity_threshold": ["none", 0.3],
        "redundancy_threshold": ["none", 0.98],
    },
    {"chunk_size": 16, "method": ["self_route", "long_context"], "k": [1, 4]},
    {"method": "closed_book"},
]


def reader(text):
    """Who finds the answer where it stands, and else says that there is none."""
    asked = re.findall(r"Who is the keeper of the (\w+ number \d+)\?", text)
    found = re.search(rf"The keeper of the {re.escape(asked[-1])} is (\w+)\.", text) if asked else None
    if found is not None:
        return found[1]
    return "unanswerable" if "unanswerable" in text else "Nobody knows"


def ran(wanted, path):
    """The results file of an experiment that was run."""
    report = run(wanted, path)
    assert report.complete, report
    return path


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results with everything in them, some of it measured."""
    path = ran(
        experiment(RecordingModel(reader), grid=FULL, data=keepers(documents=2, questions=5)),
        tmp_path_factory.mktemp("full") / "r.db",
    )
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE answers SET seconds = iif(\"values\" ->> 'method' = 'closed_book', 0.25, 1 + cells.rowid), "
            "cpu_seconds = 0.125, peak_memory_mib = 2 FROM cells WHERE cells.key = cell "
            "AND \"values\" ->> 'method' IN ('stuff', 'closed_book') AND status = 'answered'"
        )
        connection.execute("UPDATE runs SET versions = json_set(versions, '$.cores', '3')")
    return path


@pytest.fixture(scope="module")
def page(results):
    return page_of(write_report(results, results.with_suffix(".html")))


def test_the_tables_have_the_means_and_intervals_of_the_settings_highest_first(results, page):
    head, *found = page.table("settings", "token_f1 with 95 % interval")
    opened = Results.open(results)
    settings = ranked(opened.settings, "token_f1")
    assert len(found) == len(settings) == 29
    column = {name: number for number, name in enumerate(head)}
    means = [float(row[column["token_f1"]].split()[0]) for row in found]
    assert means == sorted(means, reverse=True)
    others = page.table("settings", "exact_match, rouge_l")
    taken = page.table("settings", "Mean usage per answer")
    of_others, of_taken = ({name: number for number, name in enumerate(one[0])} for one in (others, taken))
    for shown, other, took, row in zip(found, others[1:], taken[1:], settings, strict=True):
        assert shown[0] == other[0] == took[0] == row.label
        for cell, metric in ((shown[column["token_f1"]], "token_f1"), (other[of_others["rouge_l"]], "rouge_l")):
            summary = row.scores.get(metric)
            assert cell == ("–" if summary is None else f"{summary.mean:.3f} [{summary.low:.3f}, {summary.high:.3f}]")
        assert took[of_taken["answers"]] == "10 of 10"
        assert took[of_taken["calls"]] == f"{row.per_answer['calls']:.1f}".removesuffix(".0")
        # The model of these tests reports no usage.
        assert shown[column["tokens"]].startswith("~")
    assert "~ counted by oprag" in page.section("settings").text
    # So many columns are no wider than a page.
    for table in page.section("settings").all("table"):
        assert len(table.rows()[0]) <= 7
        assert table.attributes["class"] == "sortable"


def test_the_first_screen_has_a_verdict_on_each_question_and_what_it_rests_on(results, page):
    section = page.section("overview")
    opened = Results.open(results)
    found = opened.verdicts("token_f1")
    assert [one.text for one in section.all("dt")] == list(dict.fromkeys(one.question for one in found))
    assert [one.text for one in section.all("dd")] == [one.describe() for one in found]
    forest, curve = (" ".join(chart.itertext()) for chart in section.charts())
    (effect,) = effects_of(opened.matrix, "token_f1")
    assert f"rank, 12 pairs: {difference_text(effect.difference)}" in forest
    assert "other order minus source order" in forest
    assert "source (flat)" in curve
    assert "rank (flat)" in curve
    assert "context tokens" in curve


def test_fields_of_questions_make_slices(tmp_path):
    data = keepers(documents=2, questions=12)
    evil = "<b>type</b>"
    questions = tuple(
        replace(one, about={evil: "who" if number % 2 else "what", "few": number == 0})
        for number, one in enumerate(data.questions)
    )
    wanted = experiment(
        RecordingModel(reader),
        grid={"chunk_size": 16, "order": ["source", "rank"], "k": [4, 16]},
        data=replace(data, questions=questions),
    )
    path = ran(wanted, tmp_path / "r.db")
    head, *found = page_of(write_report(path, tmp_path / "r.html")).table("slices", "token_f1 by question field")
    assert head[2] == "minus source [95 % interval]"
    # One question alone is no slice.
    assert found == [
        [f"{evil} {value}", "rank", difference_text(one.difference), "12"]
        for value, (one,) in Results.open(path).slices(evil).items()
    ]
    assert slices(Results.open(path).where(order="source"), "token_f1") is None


def test_notes_that_count_are_on_the_first_screen(tmp_path):
    data = keepers(documents=1, questions=4)
    first, *others = data.questions
    some = replace(data, questions=(replace(first, answers=()), *others))
    model = RecordingModel(lambda text: "" if others[0].text in text else "Ann")
    grid = {"chunk_size": 16, "k": 2}
    path = ran(experiment(model, grid=grid, data=some, metrics=["token_f1"]), tmp_path / "r.db")
    page = page_of(write_report(path, tmp_path / "r.html"))
    assert [one.text for one in page.section("overview").by_class("warning")] == [
        "Of 4 answers: 1 empty. Answers that are cut short or empty are scored as they are.",
        "Intervals of keepers come from only 3 questions or documents, so they are too narrow.",
    ]
    assert "(n = 3)" in page.table("settings", "token_f1 with 95 % interval")[1][1]


def test_differences_are_those_of_the_harness(results, page):
    opened = Results.open(results)
    pairs = [pair for axis in opened.axes for pair in opened.differences(axis, ["token_f1"])]
    there = [pair for pair in pairs if not pair.difference.tied]
    _, *found = page.table("differences", "Differences between settings, lowest p first")
    assert sorted((row[0].split(" minus ")[0].split("=")[-1], row[2], row[4]) for row in found) == sorted(
        (
            str(pair.setting.values[pair.axis or ""]),
            difference_text(pair.difference),
            f"{pair.difference.adjusted_p:.2g}",
        )
        for pair in there
    )
    assert "k=16 minus k=1" in {row[0] for row in found}
    assert [float(row[4]) for row in found] == sorted(float(row[4]) for row in found)
    told = f"Not listed: {len(pairs) - len(there)} pairs with equal scores on every question."
    assert told in page.section("differences").text


def test_every_curve_says_its_sweet_spot_or_that_it_is_flat(results, page):
    spots = [one for one in Results.open(results).curves("k", "token_f1") if one.values["method"] != "long_context"]
    assert len(spots) > 4
    text = page.section("overview").text + page.section("length").text
    assert all(spot.describe() in text for spot in spots)  # long_context reads the same, however long the context is
    assert len(page.section("length").all("figure")) == 4
    assert "token_f1 over context length, " in page.section("length").text


def test_costs_have_tokens_and_what_was_measured(page):
    titles = [one.text for one in page.section("cost").all("figcaption")]
    assert titles == ["token_f1 against tokens", "token_f1 against seconds"]
    assert "29 settings, grouped by method." in page.section("cost").text
    _, *front = page.table("cost", "Pareto front of token_f1 against seconds")
    assert front[0][:2] == ["closed_book", "0.250"]
    scores = [float(row[2].split()[0]) for row in front]
    assert scores == sorted(scores)
    _, *measured = page.table("measured", "Time, CPU and memory")
    (closed,) = [row for row in measured if row[0] == "closed_book"]
    assert closed[2:] == ["0.250 ± 0.000", "0.125 ± 0.000", "50 ± 0", "2 ± 0"]
    told = "cpu percent is of one core; usable cores: 3. Memory was sampled every 10 ms"
    assert told in page.section("measured").text


def test_the_questions_that_differ_most_have_both_answers_and_both_maps(results, page):
    opened = Results.open(results)
    first, second = compared(opened, "token_f1", "keepers")
    assert "minus" not in first.label
    assert first.values["method"] == "self_route" or second.values["method"] == "self_route"
    apart = np.abs(second.by_question("token_f1") - first.by_question("token_f1"))
    questions = page.section("questions").all("details")
    assert len(questions) == 10
    texts = {one.question: place for place, one in enumerate(opened.matrix.questions)}
    shown = [apart[texts[one.all("summary")[0].all("span")[0].text]] for one in questions]
    assert shown == sorted(shown, reverse=True)
    for one in questions:
        assert [name.text for name in one.all("h3")] == [first.label, second.label]
        assert len(one.by_class("map")) == sum("max_candidates" in side.values for side in (first, second))
        assert "token_f1 1.000" in one.text
        assert "mean of" not in one.text  # each setting has one run


def test_of_two_settings_with_equal_scores_no_question_differs():
    high, low = {"a": 0.5, "b": 0.75}, {"a": 0.5, "b": 0.25}
    opened = frame(made(high, k=8), made(high, k=8, order="rank"), made(low, k=4))
    assert {one.values["k"] for one in compared(opened, "token_f1", "book")} == {4, 8}
    orders = ("source", "rank", "reverse_rank")
    apart = frame(*(made(high, k=k, order=order) for k, order in enumerate(orders, 2)))  # no two differ in one axis
    assert len(compared(apart, "token_f1", "book")) == 2


def test_the_reply_of_a_judge_is_beside_the_answer(tmp_path):
    judge = RecordingModel(lambda text: "It says\n<b>so</b>.\nGRADE: P")
    wanted = experiment(
        models={"m": ModelSpec(RecordingModel(reader), "m"), "judge": ModelSpec(judge, "judge")},
        grid={"k": [2, 4], "chunk_size": 16, "model": "m"},
        metrics=["token_f1", "correct"],
        judges={"correct": {"model": "judge"}},
        prices={"m": {"input": 1_000, "output": 1_000}},
    )
    page = page_of(write_report(ran(wanted, tmp_path / "r.db"), tmp_path / "r.html"))
    section = page.section("questions")
    ((*_, of_judge), (*_, of_model)) = page.table("run", "Spent in all runs")[1:]
    assert (of_judge, float(of_model) > 0) == ("–", True)
    assert section.text.count("correct: It says <b>so</b>. GRADE: P") == 2 * len(section.all("details"))


def test_everyone_can_read_it(page):
    headings = [int(one.tag[1]) for one in page.root.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(headings))
    for table in page.root.all("table"):
        (caption,) = table.all("caption")
        assert caption.text
        assert all(cell.attributes.get("scope") in ("row", "col") for cell in table.all("th"))
        assert all(row.all("th") for row in table.all("tr"))
    for box in page.root.by_class("scroll"):
        assert (box.attributes["role"], box.attributes["tabindex"]) == ("region", "0")
        assert box.attributes["aria-label"]
    assert all(image.attributes["alt"] for image in page.root.all("img"))
    for svg in page.root.all("svg"):
        assert svg.attributes["role"] == "img"
        assert svg.attributes["aria-label"]
    (html,) = page.root.all("html")
    assert html.attributes["lang"] == "en"


def test_nothing_comes_from_elsewhere_and_the_browser_is_told_so(page):
    for node in page.root.all():
        assert node.tag not in {"link", "iframe", "object", "embed", "base", "form", "audio", "video"}
        for name, value in node.attributes.items():
            assert name != "src" or value.startswith("data:image/svg+xml;base64,")
            assert name not in {"srcset", "action", "style", "poster", "xlink:href"}
            assert name == "xmlns" or "://" not in value
            assert not name.startswith("on")
    (style,), (script,) = page.root.all("style"), page.root.all("script")
    assert not re.search(r"url\(|@import|expression|://", style.raw)
    assert not re.search(r"fetch|XMLHttpRequest|import|eval|innerHTML|://", script.raw)
    (policy,) = (
        one.attributes["content"]
        for one in page.root.all("meta")
        if one.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    directives = dict(one.strip().split(" ", 1) for one in policy.split(";"))
    assert directives["default-src"] == "'none'"
    assert directives["img-src"] == "data:"
    assert "unsafe" not in policy
    for node, name in ((style, "style-src"), (script, "script-src")):
        digest = base64.b64encode(hashlib.sha256(node.raw.encode()).digest()).decode()
        assert directives[name] == f"'sha256-{digest}'"


def test_failures_are_counted_and_told(tmp_path):
    model = RecordingModel(reader, fails=lambda text, before: "number 1?" in text)
    run(experiment(model, grid={"k": [1, 2], "chunk_size": 16}), tmp_path / "r.db")
    page = page_of(write_report(tmp_path / "r.db", tmp_path / "r.html"))
    assert "Of 12 answers: 6 failed." in page.section("overview").text
    described = dict(page.table("run", "The experiment"))
    assert (described["count tokens"], described["metrics"].partition(",")[0]) == ("approximate", "token_f1")
    assert all(described.values())
    ((first,),) = rows(tmp_path / "r.db", "SELECT min(message) FROM answers")
    assert page.table("run", "Failures") == [
        ["Error", "Message", "Answers"],
        ["ConnectionRefusedError", f"{first} (3 times, and other messages)", "6"],
    ]
    assert page.section("questions").text.count("No answer. ConnectionRefusedError") == 6


def test_an_experiment_without_answers_says_so(tmp_path):
    empty = experiment(RecordingModel(), grid={"k": [2, 4], "chunk_size": 16}, limits={"calls": 0})
    assert run(empty, tmp_path / "r.db").answered == 0
    page = page_of(write_report(tmp_path / "r.db", tmp_path / "r.html"))
    assert page.sections == ["overview", "run"]
    assert "Of 12 answers: 12 not tried." in page.section("overview").text
    assert "main metric: none" in page.section("overview").text


def test_data_sets_are_not_held_against_each_other(tmp_path):
    sets = {name: keepers(documents=count, questions=4) for name, count in (("few", 1), ("many", 3))}
    wanted = experiment(RecordingModel(reader), grid={"k": [1, 4, 16], "chunk_size": 16}, name="two")
    path = ran(type(wanted)(**{**vars(wanted), "data": sets}), tmp_path / "r.db")
    page = page_of(write_report(path, tmp_path / "r.html"))
    titles = [one.text for one in page.section("cost").all("figcaption")]
    assert titles == ["token_f1 against tokens, few", "token_f1 against tokens, many"]
    assert page.section("cost").text.count("3 settings, grouped by k.") == 2
    _, *table = page.table("settings", "token_f1 with 95 %")
    assert ["few" in row[0] for row in table] == [True] * 3 + [False] * 3
    for some in (table[:3], table[3:]):
        means = [float(row[1].split()[0]) for row in some]
        assert means == sorted(means, reverse=True)
    answers = [one.text for one in page.section("overview").all("dd")]
    assert [one.partition(":")[0] for one in answers[:4]] == ["few", "many"] * 2
    assert len(page.section("overview").charts()) + len(page.section("length").charts()) == 2
