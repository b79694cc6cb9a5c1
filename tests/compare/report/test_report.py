"""The report has what the results file says, where there is something to say, and opens offline everywhere."""

import base64
import hashlib
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, median

import pytest

pytest.importorskip("jinja2")

from oprag.compare import DataSet, write_report
from oprag.compare.analysis.effects import order_effects
from oprag.compare.analysis.wording import difference_text, named
from oprag.compare.db.keys import document_key
from oprag.compare.db.reader import ResultsReader
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.meter import usable_cores
from oprag.compare.providers.embedder import EmbedderSpec
from oprag.compare.providers.model import ModelSpec
from oprag.compare.results import Results
from oprag.compare.running import resolved
from oprag.compare.running.engine import Engine
from oprag.compare.running.run import run
from oprag.errors import ExperimentError, MissingExtraError, OptionError, ResultsFileError
from tests.compare.helpers import RecordingModel, Words, experiment, keepers, rows
from tests.compare.report.grids import full_experiment, ran, reader
from tests.compare.report.parsed import Node, page_of

ALL = [
    *("overview", "settings", "differences", "length", "cost", "pivots", "measured", "questions", "run"),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Results with everything in them, some of it measured."""
    path = ran(full_experiment(), tmp_path_factory.mktemp("full") / "r.db")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "UPDATE answers SET seconds = iif(method = 'closed_book', 0.25, 1 + cell), cpu_seconds = 0.125, "
            "peak_memory_mib = 2 FROM cells WHERE cells.id = cell AND method IN ('stuff', 'closed_book') "
            "AND status = 'answered'"
        )
    return path


@pytest.fixture(scope="module")
def page(results):
    return page_of(write_report(results, results.with_suffix(".html"), documents=full_experiment()))


def test_there_is_a_section_for_everything(page):
    assert page.sections == ALL


def test_a_section_without_anything_to_show_is_left_out(tmp_path):
    path = ran(experiment(grid={"method": "context_only", "k": 2, "chunk_size": 16}), tmp_path / "r.db")
    assert page_of(write_report(path, tmp_path / "r.html")).sections == ["overview", "settings", "questions", "run"]


def test_an_experiment_without_answers_says_so(tmp_path):
    from oprag.compare.running.resolved import ResolvedExperiment

    resolved = ResolvedExperiment(experiment(grid={"method": "context_only", "k": 2}))
    ResultsFile(tmp_path / "r.db").begin(
        "small", resolved.described(), resolved.cell_records, resolved.question_records, {}
    )
    page = page_of(write_report(tmp_path / "r.db", tmp_path / "r.html"))
    assert page.sections == ["overview", "run"]
    assert "6 answers were not tried yet" in page.section("overview").text
    assert "No answers have scores" in page.section("overview").text


def test_the_tables_have_the_means_and_intervals_of_the_settings(results, page):
    head, *found = page.table("settings", "token_f1 with 95 % interval")
    settings = Results.open(results).settings
    assert len(found) == len(settings) == 29
    column = {name: number for number, name in enumerate(head)}
    others = page.table("settings", "exact_match, rouge_l")
    taken = page.table("settings", "Mean usage per answer")
    of_others, of_taken = ({name: number for number, name in enumerate(one[0])} for one in (others, taken))
    for shown, other, took, row in zip(found, others[1:], taken[1:], settings, strict=True):
        assert shown[0] == other[0] == took[0]
        assert shown[0].startswith(str(row.values["method"]))
        assert f"k={row.values.get('k')}" in shown[0] or "k" not in row.values
        for cell, metric in ((shown[column["token_f1"]], "token_f1"), (other[of_others["rouge_l"]], "rouge_l")):
            summary = row.scores.get(metric)
            assert cell == ("–" if summary is None else f"{summary.mean:.3f} [{summary.low:.3f}, {summary.high:.3f}]")
        assert took[of_taken["answers"]] == "10 of 10"
        assert took[of_taken["calls"]] == f"{row.per_answer['calls']:.1f}".removesuffix(".0")
    # So many columns are no wider than a page.
    for table in page.section("settings").all("table"):
        assert len(table.rows()[0]) <= 7


def test_settings_are_beside_their_difference_from_source_order(results, page):
    head, *found = page.table("settings", "token_f1 with 95 % interval")
    column = head.index("difference")
    told = {row[0]: row[column] for row in found}
    for pair in Results.open(results).differences("order", ["token_f1"]):
        name = named(pair.setting.values, Results.open(results).axes)
        shown = f"{difference_text(pair.difference)}{' *' if pair.difference.significant else ''}"
        assert told[name] == ("equal" if pair.difference.tied else shown)
    assert all(text == "–" for name, text in told.items() if "source" in name)


def test_the_first_screen_has_a_verdict_on_each_question_and_what_it_rests_on(results, page):
    section = page.section("overview")
    questions = [one.text for one in section.all("dt")]
    assert questions == [
        "Does source order help here?",
        "How much context is worth its tokens?",
        "What does it cost?",
    ]
    opened = Results.open(results)
    assert [one.text for one in section.all("dd")] == [one.describe() for one in opened.verdicts("token_f1")]
    (forest,) = section.by_class("forest")
    effects = order_effects(opened.matrix, "token_f1", family=opened.family("token_f1"))
    drawn = [one for one in effects if one.pooled or not one.difference.tied]
    assert [row[2].removesuffix(" *") for row in forest.rows()[1:-1]] == [
        difference_text(-one.difference) for one in drawn
    ]
    assert len(section.all("figure")) == 1


def test_fields_of_questions_make_slices_with_the_contrast_between_them(tmp_path):
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
    section = page_of(write_report(path, tmp_path / "r.html")).section("slices")
    # One question alone is no slice.
    assert [one.text for one in section.all("h3")] == [f"By {evil}"]
    (table,) = section.all("table")
    slices = Results.open(path).slices(evil)
    assert [row[::2] for row in table.rows()[1:-1]] == [
        [
            f"rank; {evil} {one.value}, n = 12",
            f"{difference_text(-one.difference)}{' *' if one.difference.significant else ''}",
        ]
        for one in slices
    ]
    contrast = slices[0].contrast
    assert f"{evil} what minus who, rank order: {(-contrast).mean:+z.3f} [" in section.text


def test_notes_that_count_are_on_the_first_screen(tmp_path):
    data = keepers(documents=1, questions=4)
    first, *others = data.questions
    some = replace(data, questions=(replace(first, answers=()), *others))
    model = RecordingModel(lambda text: "" if others[0].text in text else "Ann")
    grid = {"chunk_size": 16, "k": 2}
    path = ran(experiment(model, grid=grid, data=some, metrics=["token_f1"]), tmp_path / "r.db")
    (notes,) = page_of(write_report(path, tmp_path / "r.html")).section("overview").by_class("notes")
    assert [one.text for one in notes.all("li")] == [
        "1 of 4 answers is empty, scored as it is.",
        "3 of 4 questions of keepers have a score of token_f1: the others do not have gold answers.",
        "Intervals of keepers come from only 3 questions or documents, so they are too narrow.",
    ]


def test_differences_are_those_of_the_harness(results, page):
    _, *found = page.table("differences", "Mean difference in token_f1 from k 1")
    pairs = Results.open(results).differences("k", ["token_f1"])
    there = [pair for pair in pairs if not pair.difference.tied]
    assert {(row[0], row[2], row[4]) for row in found} == {
        (
            str(pair.value),
            f"{difference_text(pair.difference)}{' *' if pair.difference.significant else ''}",
            f"{pair.difference.adjusted_p:.2g}",
        )
        for pair in there
    }
    assert len(found) == len(there)
    told = f"Not listed: {len(pairs) - len(there)} pairs with equal scores on every question."
    assert told in page.section("differences").text


def test_a_control_that_meets_many_baselines_is_one_row(results, page):
    _, *found = page.table("differences", "Mean difference in token_f1 from method self_route")
    pairs = Results.open(results).differences("method", ["token_f1"])
    several = [pair for pair in pairs if pair.value == "closed_book" and not pair.difference.tied]
    assert len(several) > 1
    (row,) = (row for row in found if row[0] == "closed_book")
    assert row[1] == f"against {len(several)} settings"
    means = [pair.difference.mean or 0.0 for pair in several]
    assert row[2].startswith(f"{min(means):+z.3f} to {max(means):+z.3f}; significant in ")


def test_the_curve_says_its_sweet_spot_or_that_it_is_flat(results, page):
    text = page.section("length").text
    spots = Results.open(results).curves("k", "token_f1")
    assert len(spots) > 4
    for spot in spots:
        if spot.values["method"] != "long_context":  # Which reads the same, however long the context is.
            assert spot.describe() in text
    # The thresholds drop nothing that matters: their curves are drawn once, and those of stuff on the first screen.
    assert len(page.section("length").all("figure")) == 1
    assert "none: the chart is in the overview" in text
    (same,) = re.findall(r"Same points: ([^.]+(?:\.\d+[^.]+)*)\.", text)
    assert same.count("; ") == 2


def test_costs_have_tokens_and_what_was_measured(page):
    titles = [one.text for one in page.section("cost").all("figcaption")]
    assert titles == ["token_f1 against tokens", "token_f1 against time"]
    _, *front = page.table("cost", "Pareto front of token_f1 against time")
    assert front[0][:2] == ["closed_book", "0.250"]
    scores = [float(row[2].split()[0]) for row in front]
    assert scores == sorted(scores)
    _, *measured = page.table("measured", "Time, CPU and memory")
    (closed,) = [row for row in measured if row[0] == "closed_book"]
    assert closed[2:] == ["0.250 ± 0.000", "0.125 ± 0.000", "50 ± 0", "2 ± 0"]
    told = f"CPU % is of one core; usable cores: {usable_cores():g}. Memory was sampled every 10 ms"
    assert told in page.section("measured").text


def test_pivots_pool_the_same_answers_and_are_the_darker_the_higher(results, page):
    assert [one.text for one in page.section("pivots").all("h3")] == [
        "method × order",
        "similarity_threshold × redundancy_threshold",
    ]
    head, *found = page.table("pivots", "token_f1: similarity_threshold × redundancy_threshold, mean")
    assert head == ["similarity_threshold", "none", "0.98"]
    by_question: dict[str, list[float]] = {}
    for row in Results.open(results).answers():
        if (row["method"], row["similarity_threshold"], row["redundancy_threshold"]) == ("stuff", 0.3, None):
            by_question.setdefault(row["question_id"], []).append(row["token_f1"])
    (last,) = (row for row in found if row[0] == "0.3")
    assert last[1] == f"{fmean(map(fmean, by_question.values())):.3f}"


def test_pivots_are_those_of_papers_and_the_darkest_cell_is_the_highest(tmp_path):
    grid = {"chunk_size": 16, "order": ["source", "rank"], "k": [4, 16], "method": ["stuff", "refine"]}
    path = ran(experiment(RecordingModel(reader), grid=grid), tmp_path / "r.db")
    section = page_of(write_report(path, tmp_path / "r.html")).section("pivots")
    assert [one.text for one in section.all("h3")] == ["method × order"]
    table = section.all("table")[1]
    assert table.all("caption")[0].text == "tokens per answer, input and output: method × order, median ± sd"
    by_question: dict[str, list[int]] = {}
    for row in Results.open(path).answers():
        if (row["method"], row["order"]) == ("stuff", "rank"):
            by_question.setdefault(row["question_id"], []).append(row["tokens"])
    (stuff,) = (row for row in table.rows() if row[0] == "stuff")
    middle = median(fmean(tokens) for tokens in by_question.values())
    assert float(stuff[2].split(" ± ")[0]) == pytest.approx(middle, abs=0.06)
    cells = {
        float(cell.text.split(" ")[0].replace(",", "")): cell.attributes["class"].split()[1] for cell in table.all("td")
    }
    assert [cells[min(cells)], cells[max(cells)]] == ["h0", "h10"]


def test_what_answers_took_says_how_often_the_first_step_of_self_route_was_enough(results, page):
    head, *found = page.table("settings", "Mean usage per answer")
    column = head.index("answered in the first step")
    routed = [row for row in found if row[0].startswith("self_route")]
    for row, k in zip(routed, (1, 4), strict=True):
        (counts,) = rows(
            results,
            "SELECT sum(route = 'rag'), count(*) FROM answers JOIN cells ON cells.id = cell "
            "WHERE method = 'self_route' AND k = ?",
            k,
        )
        assert 0 < counts[0] <= counts[1] == 10
        assert f"k={k}" in row[0]
        assert row[column] == f"{100 * counts[0] / counts[1]:.1f} %"
    assert {row[column] for row in found if row not in routed} == {"–"}


def test_the_drill_down_has_every_answer_and_two_contexts_that_differ_in_order(page):
    questions = [one for one in page.section("questions").all("details") if "id" in one.attributes]
    assert len(questions) == 10
    for one in questions:
        (table,) = one.all("table")
        assert len(table.rows()) == 1 + 29
        sides = one.by_class("sides")[0]
        names = [name.text for name in sides.all("h4")]
        assert len(names) == 2
        assert [name.replace("source", "X").replace("rank", "X") for name in names] == [
            names[0].replace("source", "X")
        ] * 2
        links = [[link.attributes["href"] for link in side.all("a")] for side in sides.all("ol")]
        assert sorted(links[0]) == sorted(links[1])
        assert links[0] != links[1]
        # The text of a chunk is there once, in the order of the document.
        texts = one.by_class("texts")[0].all("li")
        assert sorted(f"#{text.attributes['id']}" for text in texts) == sorted(links[0])
        starts = [int(re.findall(r"characters ([\d,]+)", text.text)[0].replace(",", "")) for text in texts]
        assert starts == sorted(starts)


def test_without_the_data_places_are_shown_and_why(results, tmp_path):
    page = page_of(write_report(results, tmp_path / "r.html"))
    section = page.section("questions")
    assert section.by_class("texts") == []
    assert section.all("a") == []  # which would lead nowhere
    assert "A results file does not contain document text" in section.text
    assert re.search(r"characters [\d,]+–[\d,]+ rank 0", section.text)


def test_a_document_that_has_changed_is_not_taken_for_the_one_that_was_read(results, tmp_path):
    data = keepers(documents=2, questions=5)
    changed = {**data.documents, "book 1": f"{data.documents['book 1']} "}
    page = page_of(
        write_report(
            results,
            tmp_path / "r.html",
            documents={"keepers": type(data)(name="x", documents=changed, questions=data.questions)},
        )
    )
    assert "Texts are shown for 5 of 10 questions" in page.section("questions").text
    assert len(page.section("questions").by_class("texts")) == 5


def prompts_in(page):
    """The names and calls of the two contexts of each question that has prompts; the parts of a call by their role."""
    found = []
    for one in page.section("questions").all("details"):
        if one.all("summary")[0].text.startswith("Prompts with these contexts"):
            (sides,) = one.by_class("sides")
            columns = [child for child in sides.children if isinstance(child, Node)]
            found.append(
                [
                    (
                        column.all("h4")[0].text,
                        [
                            dict(
                                zip((dt.text for dt in call.all("dt")), (dd.raw for dd in call.all("dd")), strict=True)
                            )
                            for call in column.by_class("call")
                        ],
                    )
                    for column in columns
                ]
            )
    return found


def test_prompts_of_two_contexts_are_side_by_side_with_their_replies(results, page):
    questions = [one for one in page.section("questions").all("details") if "id" in one.attributes]
    found = prompts_in(page)
    assert len(found) == len(questions) == 10
    for shown, question in zip(found, questions, strict=True):
        asked = question.all("summary")[0].all("span")[0].text
        answers = {row[0]: row[1] for row in question.all("table")[0].rows()}
        assert [name for name, _ in shown] == [one.text for one in question.by_class("sides")[0].all("h4")]
        for name, (call,) in shown:
            assert (call["call"], call["reply"]) == ("answer", answers[name])
            assert asked in call["user"]
        # The same chunks in another order.
        assert shown[0][1][0]["user"] != shown[1][1][0]["user"]


def test_prompts_are_shown_where_experiment_and_documents_are_as_they_were(results, tmp_path):
    model = RecordingModel(reader)
    wanted = full_experiment()
    data = keepers(documents=2, questions=5)
    changed = replace(data, documents={**data.documents, "book 1": f"{data.documents['book 1']} "})
    others = wanted.replace(data={"keepers": changed}, models={"m": ModelSpec(model, "model")})
    assert len(prompts_in(page_of(write_report(results, tmp_path / "r.html", documents=others)))) == 5
    assert model.calls == []
    # Other prompts make other answers.
    others = wanted.replace(prompts=replace(wanted.prompts, instruction="Be brief."))
    assert prompts_in(page_of(write_report(results, tmp_path / "r.html", documents=others))) == []
    assert prompts_in(page_of(write_report(results, tmp_path / "r.html", documents=dict(wanted.data)))) == []


def test_prompts_that_cannot_be_made_are_left_out_and_the_report_says_why(results, tmp_path, monkeypatch):
    def missing(*_):
        raise MissingExtraError("A store", "chroma")

    monkeypatch.setattr(Engine, "run", missing)
    page = page_of(write_report(results, tmp_path / "r.html", documents=full_experiment()))
    assert "Prompts are not shown: A store requires" in page.section("questions").text
    assert prompts_in(page) == []


def test_prompts_take_no_more_than_their_room(tmp_path, monkeypatch):
    grid = {"k": 80, "chunk_size": 32, "order": ["source", "rank"], "method": "refine", "passage_tokens": 60}
    long = experiment(RecordingModel(reader), grid=grid, data=keepers(questions=5, words=3_000))
    path = ran(long, tmp_path / "r.db")
    first = write_report(path, tmp_path / "whole.html", documents=long)
    assert re.search(r"\d+ calls more", page_of(first).section("questions").text)
    whole = first.stat().st_size
    for share in (0.9, 0.8, 0.7):
        monkeypatch.setattr("oprag.compare.report.write._MAX_SIZE", int(share * whole))
        page = write_report(path, tmp_path / "r.html", documents=long)
        assert page.stat().st_size < share * whole
    assert re.search(r"\[… [\d,]+ characters …\]", page.read_text())
    monkeypatch.setattr("oprag.compare.report.write._MAX_SIZE", 0)
    section = page_of(write_report(path, tmp_path / "r.html", documents=long)).section("questions")
    assert "Prompts are not shown: there are too many answers" in section.text


def test_the_reply_of_a_judge_is_beside_its_score(tmp_path):
    judge = RecordingModel(lambda text: "It says\n<b>so</b>.\nGRADE: P")
    wanted = experiment(
        models={"m": ModelSpec(RecordingModel(reader), "m"), "judge": ModelSpec(judge, "judge")},
        grid={"k": [2, 4], "chunk_size": 16, "model": "m"},
        metrics=["token_f1", "correct"],
        judges={"correct": {"model": "judge"}},
    )
    page = page_of(write_report(ran(wanted, tmp_path / "r.db"), tmp_path / "r.html", documents=wanted))
    for table in page.section("questions").all("table"):
        _, *answers = table.rows()
        assert len(answers) == 2
        assert all(row[1].endswith("correct 0.500: It says <b>so</b>. GRADE: P") for row in answers)
    assert prompts_in(page)


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
    for svg in page.root.all("svg"):
        if svg.attributes.get("aria-hidden") == "true":
            continue
        assert svg.attributes["role"] == "img"
        assert svg.attributes.get("aria-label") or (svg.all("title")[0].text and svg.all("desc")[0].text)
    (html,) = page.root.all("html")
    assert html.attributes["lang"] == "en"


def test_every_link_leads_to_a_place_on_the_page(page):
    ids = [one.attributes["id"] for one in page.root.all() if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    links = [one.attributes["href"] for one in page.root.all("a")]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert all(link.startswith("#") for link in links)


def test_nothing_comes_from_elsewhere_and_the_browser_is_told_so(page):
    for node in page.root.all():
        assert node.tag not in {"link", "iframe", "object", "embed", "img", "base", "form", "audio", "video"}
        for name, value in node.attributes.items():
            assert name not in {"src", "srcset", "action", "style", "poster", "xlink:href"}
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
    assert "unsafe" not in policy
    for node, name in ((style, "style-src"), (script, "script-src")):
        digest = base64.b64encode(hashlib.sha256(node.raw.encode()).digest()).decode()
        assert directives[name] == f"'sha256-{digest}'"


def test_equal_input_gives_an_equal_page(results, tmp_path):
    pages = [write_report(results, tmp_path / f"{number}.html").read_bytes() for number in range(2)]
    assert pages[0] == pages[1]


def test_failures_are_counted_and_told(tmp_path):
    model = RecordingModel(reader, fails=lambda text, before: "number 1?" in text)
    run(experiment(model, grid={"k": [1, 2], "chunk_size": 16}), tmp_path / "r.db")
    page = page_of(write_report(tmp_path / "r.db", tmp_path / "r.html"))
    assert "6 answers failed and have no score." in page.section("overview").text
    assert page.table("run", "Failures") == [
        ["Error", "Message", "Answers"],
        [
            "ConnectionRefusedError",
            rows(tmp_path / "r.db", "SELECT min(message) FROM answers")[0][0],
            "6",
        ],
    ]
    assert page.section("questions").text.count("No answer. ConnectionRefusedError") == 6


def test_data_sets_are_not_held_against_each_other(tmp_path):
    sets = {name: keepers(documents=count, questions=4) for name, count in (("few", 1), ("many", 3))}
    wanted = experiment(RecordingModel(reader), grid={"k": [1, 4, 16], "chunk_size": 16}, name="two")
    path = ran(type(wanted)(**{**vars(wanted), "data": sets}), tmp_path / "r.db")
    page = page_of(write_report(path, tmp_path / "r.html"))
    titles = [one.text for one in page.section("cost").all("figcaption")]
    assert titles == ["token_f1 against tokens, few", "token_f1 against tokens, many"]
    marked = [row.all("th", "td") for row in page.section("settings").by_class("marked")]
    _, *table = page.table("settings", "token_f1 with 95 %")
    for (name, score, *_), data in zip(marked, ("few", "many"), strict=True):
        means = [float(row[1].split()[0]) for row in table if data in row[0]]
        assert data in name.text
        assert float(score.text.split()[0]) == max(means) > min(means)
    answers = [one.text for one in page.section("overview").all("dd")]
    assert [one.partition(":")[0] for one in answers[:4]] == ["few", "many"] * 2
    assert len(page.section("length").all("figure")) == 2


def test_a_metric_is_named(results, tmp_path):
    page = page_of(write_report(results, tmp_path / "r.html", metric="evidence_coverage"))
    assert "evidence_coverage against tokens" in page.section("cost").text


@pytest.mark.parametrize("metric", ["exact", "inverted_pairs", "choice_accuracy"])
def test_a_metric_that_cannot_be_is_refused(results, tmp_path, metric):
    with pytest.raises(OptionError, match=metric):
        write_report(results, tmp_path / "r.html", metric=metric)
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_is_named_where_there_are_several(tmp_path):
    for name in ("first", "second"):
        ran(experiment(grid={"method": "context_only", "k": 2}, name=name), tmp_path / "r.db")
    with pytest.raises(ExperimentError, match="several experiments; specify one of: first, second"):
        write_report(tmp_path / "r.db", tmp_path / "r.html")
    page = page_of(write_report(tmp_path / "r.db", tmp_path / "r.html", experiment="second"))
    assert page.root.all("h1")[0].text == "Results of second"


def test_what_is_no_results_file_is_refused_and_nothing_is_written(tmp_path):
    with pytest.raises(ResultsFileError, match="no such results file"):
        write_report(tmp_path / "none.db", tmp_path / "r.html")
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection, connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(ResultsFileError, match="another SQLite database"):
        write_report(tmp_path / "other.db", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("output", ["missing/r.html", "."])
def test_an_output_that_cannot_be_is_refused(results, tmp_path, output):
    with pytest.raises(OptionError, match="folder"):
        write_report(results, tmp_path / output)


def test_the_results_file_is_not_changed(results, tmp_path):
    before = results.read_bytes()
    write_report(results, tmp_path / "r.html")
    assert results.read_bytes() == before


def answers_of(data: DataSet) -> Callable[[str], str]:
    """Who knows the answers by heart."""
    known = {question.text: question.answers[0] for question in data.questions}
    return lambda text: next(answer for question, answer in known.items() if question in text)


@pytest.fixture(scope="module")
def patchy(tmp_path_factory):
    """Two data sets of easy and hard questions, of which the hard ones failed with a similarity threshold."""
    sets = {name: keepers(documents=2, questions=3) for name in ("one", "other")}
    told = answers_of(sets["one"])
    model = RecordingModel(
        lambda text: "wrong" if "number 1?" in text else told(text),
        # Where chunks were dropped.
        fails=lambda text, before: "number 1?" in text and len(text) < 500,
    )
    grid = {
        "chunk_size": 16,
        "k": 8,
        "stitch": False,
        "similarity_threshold": ["none", 0.78],
        "redundancy_threshold": ["none", 0.98],
    }
    wanted = experiment(model, grid=grid, name="patchy")
    path = tmp_path_factory.mktemp("patchy") / "r.db"
    report = run(type(wanted)(**{**vars(wanted), "data": sets}), path)
    assert sum(report.failed.values()) == 12  # three hard questions of each set, in two settings
    return path


def test_a_mean_over_fewer_questions_says_so(patchy, tmp_path):
    page = page_of(write_report(patchy, tmp_path / "r.html"))
    head, *found = page.table("pivots", "token_f1: similarity_threshold × redundancy_threshold")
    assert head == ["similarity_threshold", "none", "0.98"]
    assert [["(n=6)" in cell for cell in row[1:]] for row in found] == [[False, False], [True, True]]


def test_a_ring_stands_around_a_sweet_spot_and_nowhere_else(tmp_path):
    # A model that needs three chunks, and loses its way in more.
    data = keepers(documents=4, questions=6)
    told = answers_of(data)
    model = RecordingModel(lambda text: told(text) if text.count("|") == 3 else "unknown")
    grid = {"chunk_size": 16, "k": [1, 3, 8], "stitch": False, "header": "|", "order": ["source", "rank"]}
    path = ran(experiment(model, grid=grid, data=data), tmp_path / "r.db")
    page = page_of(write_report(path, tmp_path / "r.html"))
    (svg,) = page.section("overview").by_class("oprag-chart")
    assert page.section("length").text.count("sweet spot at k=3: token_f1 1.000") == 2
    (tokens,) = {row.per_answer["context_tokens"] for row in Results.open(path).settings if row.values["k"] == 3}
    ringed = [one.text for one in svg.all("circle") if one.attributes["fill"] == "none" and one.text]
    assert len(ringed) == 2
    assert all(f"{tokens:.2f}" in text and "token_f1 1" in text for text in ringed)


def test_dropped_chunks_are_on_the_map_of_every_number_of_chunks(tmp_path):
    # The exact index is searched once, for the largest k of the grid.
    grid = {"method": "context_only", "chunk_size": 16, "k": [4, 16], "order": ["source", "rank"], "token_budget": 40}
    path = ran(experiment(grid=grid), tmp_path / "r.db")
    for k in (4, 16):
        with ResultsReader(path, "small") as reader:
            index = next(reader.contexts())[2].index_key
            assert len(reader.retrieved(index, reader.questions[0].question, "dense", "index", k)) == k
    page = page_of(write_report(path, tmp_path / "r.html", metric="evidence_coverage"))
    sides = page.section("questions").by_class("sides")
    told = [side.text for side in sides]
    assert told
    assert all("dropped by token_budget" in text for text in told)
    assert all(one.attributes["d"] for side in sides for one in side.by_class("out"))


def test_chunks_of_another_embedder_are_not_on_the_map(tmp_path):
    grid = {"method": "context_only", "chunk_size": 16, "k": 4, "embedder": ["words", "others"]}
    both = {"words": EmbedderSpec(Words(), "words"), "others": EmbedderSpec(Words("others"), "others")}
    path = ran(experiment(grid=grid, embedders=both), tmp_path / "r.db")
    with ResultsReader(path, "small") as reader:
        index = next(reader.contexts())[2].index_key
        # The file does not say for certain which of the two it was.
        assert reader.retrieved(index, reader.questions[0].question, "dense", "index", 4) == ()


def test_no_column_is_lost_on_paper(page):
    (style,) = page.root.all("style")
    on_paper = re.search(r"@media print\{(.*)\}\s*@page", style.raw, re.DOTALL)
    assert on_paper is not None
    # Tables are as wide as the paper and no wider: cells may break, boxes that scroll on a screen hide nothing.
    assert ".scroll{display:block;overflow:visible;max-width:none" in on_paper[1]
    assert "table{width:100%" in on_paper[1]
    assert re.search(r"th,td,\.n,[^{]*\{[^}]*min-width:0;white-space:normal", on_paper[1])
    assert "@page{size:A4 landscape" in style.raw
    assert all(len(table.rows()[0]) <= 10 for table in page.root.all("table"))


def test_documents_are_hashed_once(results, tmp_path, monkeypatch):
    hashed = []

    def counted(text):
        hashed.append(text)
        return document_key(text)

    monkeypatch.setattr(resolved, "document_key", counted)
    write_report(results, tmp_path / "r.html", documents=full_experiment())
    assert len(hashed) == 2
