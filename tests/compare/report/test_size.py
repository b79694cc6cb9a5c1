"""A report of many answers stays small, and says what it leaves out."""

import random
import re

import pytest

pytest.importorskip("jinja2")

from oprag.compare import DataSet, Question, write_report
from oprag.compare.db.records import AnswerRecord
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.running.resolved import ResolvedExperiment
from tests.compare.helpers import RecordingModel, experiment, keepers
from tests.compare.report.grids import ran
from tests.compare.report.parsed import page_of
from tests.helpers import WORDS

FIVE_MEGABYTES = 5_000_000


def written(path, words, letters=""):
    """Results of 10,000 answers of so many words: 200 questions in 50 cells."""
    wanted = experiment(
        RecordingModel(),
        grid={
            "order": ["source", "rank", "reverse_rank", "edges", "random"],
            "k": list(range(1, 11)),
            "chunk_size": 16,
        },
        data=keepers(documents=20, questions=10, words=60),
        metrics=["token_f1", "rouge_l", "answer_cosine"],
    )
    resolved = ResolvedExperiment(wanted)
    file = ResultsFile(path)
    file.begin(wanted.name, resolved.described(), resolved.cell_records, resolved.question_records, {"python": "3"})
    generator = random.Random(0)
    answers = [
        AnswerRecord(
            cell=cell.key,
            question=question.key,
            text=letters + " ".join(generator.choices(WORDS, k=words)),
            context_tokens=16 * int(str(cell.values["k"])),
            scores={name: round(generator.random(), 2) for name in wanted.metrics},
        )
        for cell in resolved.cell_records
        for question in resolved.question_records
    ]
    assert len(answers) == 10_000
    file.put_answers(answers)
    file.close()
    return path


def test_a_report_of_ten_thousand_answers_has_all_of_them_and_is_small(tmp_path):
    path = write_report(written(tmp_path / "r.db", 12), tmp_path / "r.html")
    assert path.stat().st_size < FIVE_MEGABYTES
    page = page_of(path)
    section = page.section("questions")
    assert sum(len(table.rows()) - 1 for table in section.all("table")) == 10_000
    assert "more in the file" not in section.text


def test_long_answers_are_cut_and_questions_that_do_not_fit_are_counted(tmp_path):
    # Characters of three bytes: what counts is the size of the file.
    path = write_report(written(tmp_path / "r.db", 400, "漢" * 3_000), tmp_path / "r.html")
    assert path.stat().st_size < FIVE_MEGABYTES
    section = page_of(path).section("questions")
    shown = len([one for one in section.all("details") if "id" in one.attributes])
    assert 0 < shown < 200
    assert f"{shown} of 200 questions are shown" in section.text
    assert re.search(r"cut at \d+ characters", section.text)
    assert re.search(r"\([\d,]+ characters more\)", section.text)


def test_long_names_are_cut(tmp_path):
    name = "n" * 100_000
    text = " ".join(WORDS[number % len(WORDS)] for number in range(1_500))
    question = Question(id=name, text="Where?", documents=(name, "other"))
    data = DataSet(name="long", documents={name: text, "other": text}, questions=(question,))
    wanted = experiment(None, grid={"method": "context_only", "k": [40, 60], "chunk_size": 16}, data=data)
    path = write_report(ran(wanted, tmp_path / "r.db"), tmp_path / "r.html", documents=wanted)
    assert path.stat().st_size < 1_000_000
    assert "nnn…, characters" in page_of(path).section("questions").text
