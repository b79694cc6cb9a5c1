"""A report stays small, however many settings, questions and long texts there are."""

import random

import pytest

pytest.importorskip("jinja2")

from oprag.compare import write_report
from oprag.compare.db.records import AnswerRecord
from oprag.compare.db.results_file import ResultsFile
from oprag.compare.running.prepared import PreparedExperiment
from tests.compare.helpers import RecordingModel, experiment, keepers
from tests.compare.report.parsed import page_of
from tests.helpers import WORDS

TWO_MEGABYTES = 2_000_000


LONG = "漢" * 3_000  # characters of three bytes: what counts is the size of the file


def written(path):
    """Results of 13,000 answers: 200 questions in 65 settings; the best settings have the longest answers."""
    wanted = experiment(
        RecordingModel(),
        grid={
            "order": ["source", "rank", "reverse_rank", "edges", "random"],
            "k": list(range(1, 14)),
            "chunk_size": 16,
        },
        data=keepers(documents=20, questions=10, words=60),
        metrics=["token_f1", "rouge_l", "answer_cosine"],
    )
    resolved = PreparedExperiment(wanted)
    file = ResultsFile(path)
    file.begin(wanted.name, resolved.described(), resolved.cell_records, resolved.question_records, {"python": "3"})
    generator = random.Random(0)
    answers = [
        AnswerRecord(
            cell=cell.key,
            question=question.key,
            text=(LONG if cell.values["k"] == 13 else "") + " ".join(generator.choices(WORDS, k=12)),
            context_tokens=16 * int(str(cell.values["k"])),
            scores={name: round(generator.random() + (cell.values["k"] == 13), 2) for name in wanted.metrics},
        )
        for cell in resolved.cell_records
        for question in resolved.question_records
    ]
    assert len(answers) == 65 * 200
    file.put_answers(answers)
    file.close()
    return path


def test_a_report_of_65_settings_and_200_questions_is_small(tmp_path):
    path = write_report(written(tmp_path / "r.db"), tmp_path / "r.html")
    assert path.stat().st_size < TWO_MEGABYTES
    page = page_of(path)
    assert len(page.table("settings", "token_f1 with 95 % interval")) == 1 + 65
    section = page.section("questions")
    assert len(section.all("details")) == 20
    assert "20 of 200 questions" in section.text
    assert section.text.count("漢…") == 40
