"""`oprag compare`, run as a user runs it; in processes of its own where it is interrupted or has no terminal."""

import csv
import html
import json
import os
import pty
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from oprag.cli.app import app
from oprag.compare import Results
from oprag.compare.analysis.settings import money_text
from oprag.compare.meter import usable_cores
from oprag.compare.providers.specs import EmbedderSpec
from oprag.methods.profile import read_profile
from tests.compare.folders import argument, in_python, model, write_data, write_experiment
from tests.compare.helpers import RecordingModel, Words, experiment

ROOT = Path(__file__).parent.parent.parent
COMMAND = [sys.executable, "-c", "from oprag.cli import main; main()", "compare"]
ORDERS = 'method = "stuff"\norder = ["source", "rank", "random"]\nseed = [1, 2]\nk = [2, 4]'
NO_MODEL = 'method = "context_only"\norder = ["source", "rank"]\nk = [2, 3]'
PRICE = "[prices.quick]\ninput = 1000\noutput = 1000"


def compare(path, *arguments, **kwargs) -> Any:
    return CliRunner().invoke(app, ["compare", argument(path), *map(str, arguments)], **kwargs)


def done(*arguments, code=0):
    result = compare(*arguments)
    assert result.exit_code == code, result.output
    return result


def started(path, *arguments, **kwargs) -> Any:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [*COMMAND, argument(path), *map(str, arguments)]
    return subprocess.Popen(command, **{"env": environment, "text": True, **pipes, **kwargs})


def calls_in(log):
    return log.read_text(encoding="utf-8").splitlines() if log.exists() else []


def wait_for_calls(log, count):
    for _ in range(1_200):
        if len(calls_in(log)) >= count:
            return
        time.sleep(0.05)
    raise AssertionError(f"{len(calls_in(log))} calls of {count}")


def committed(results):
    with closing(sqlite3.connect(results)) as connection, connection:
        return {text.split()[-1] for (text,) in connection.execute("SELECT text FROM replies")}


def check_refusal(result, *words, code=2):
    """One sentence on standard error that names what is wrong, and nothing else."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert len(re.findall(r"^Error: ", result.stderr, re.MULTILINE)) == 1
    assert result.stderr.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


# Replies that are no answers


def shortened(**settings):
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    return "\n".join(["[models.m]", 'use = "tests.compare.answering:short"', *lines])


def test_replies_that_are_cut_or_empty_are_counted_wherever_results_are_told(tmp_path):
    grid = 'method = "stuff"\norder = ["source", "rank"]\nk = [1, 4]'
    # No document asks a question.
    path = write_experiment(tmp_path, grid, shortened(cut="crane lift?", empty="bread rise?"))
    result = done(path, "--all")
    assert len(re.findall(r"^(?:source|rank), k=[14] .* 1 ! +1 !$", result.stdout, re.MULTILINE)) == 4
    assert "! marks settings with this problem in more than 10% of the answers" in result.stdout
    assert "4 answers: a reply was cut short at the model's limit of output tokens" in result.stderr
    assert "4 answers: the model's reply was empty" in result.stderr
    data = json.loads(done(path, "--json").stdout)
    assert [sum(row["notes"].values()) for row in data["settings"]] == [2] * 4
    settings = tmp_path / "settings.csv"
    assert f"CSV: {settings}\n" in done(path, "--csv", settings).stderr
    with settings.open(encoding="utf-8-sig", newline="") as file:
        assert [(row["cut_short"], row["empty"]) for row in csv.DictReader(file)] == [("1", "1")] * 4
    assert "16 answers, 4 cut short, 4 empty" in repr(Results.open(tmp_path / "harbour.db"))
    assert CliRunner().invoke(app, ["report", str(tmp_path / "harbour.db")]).exit_code == 0
    page = html.unescape((tmp_path / "harbour.html").read_text(encoding="utf-8"))
    assert "Of 16 answers: 4 cut short, 4 empty. Answers that are cut short or empty are scored as they are." in page


# Results


def test_one_table_fits_eighty_columns(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = write_experiment(tmp_path, ORDERS, model(), PRICE)
    check_refusal(compare(path), "cost about", "--yes")
    shown = done(path, "--yes", "--metric", "rouge_l").stdout
    caption, _, titles, *lines = shown.splitlines()
    assert caption.startswith("rouge_l with 95 % interval, highest first; the difference is from the setting that dif")
    assert re.split(" {2,}", titles.strip()) == ["setting", "rouge_l", "source", "tokens", "money"]
    assert max(map(len, lines[:6])) <= 80
    # Then what that says, in sentences.
    everything = done(path, "--all", "--metric", "rouge_l")
    assert "No metric with scores" not in everything.stderr
    for words in ("The scores of each question are first averaged over seeds and repeats.", "\n── All differences\n"):
        assert (words in shown, words in everything.stdout) == (False, True)
    assert [line.partition("? ")[0] for line in lines[-2:]] == [
        "Does source order help here",
        "How much context is worth its tokens",
    ]
    data = json.loads(done(path, "--json").stdout)
    results = Results.open(tmp_path / "harbour.db")
    assert (data["metric"], data["deploy"]) == (results.metric, [results.deployed().values])
    assert data["verdicts"] == [asdict(verdict) for verdict in results.verdicts()]
    assert [one["points"] for one in data["curves"]] == [[2, 4]] * 3
    assert data["checks"] == []
    settings = sorted(data["settings"], key=lambda row: -row["scores"]["rouge_l"]["mean"])
    assert len(settings) == 6
    for line, row in zip(lines, settings, strict=False):
        name, score, *_, money = re.split(r" {2,}", line.strip())
        assert money == money_text(row["per_answer"]["money"])
        assert name == f"{row['values']['order']}, k={row['values']['k']}"
        assert score.startswith(f"{row['scores']['rouge_l']['mean']:.3f} [")


def test_ten_rows_are_shown_and_all_on_demand(tmp_path):
    path = write_experiment(tmp_path, f'method = "context_only"\nk = {list(range(1, 13))}')
    shown = done(path).stdout
    assert len(re.findall("^k=", shown, re.MULTILINE)) == 10
    assert "2 more; --all prints all of them." in shown
    scores = [float(score) for score in re.findall(r"^k=\d+ +(\S+)", shown, re.MULTILINE)]
    assert scores == sorted(scores, reverse=True)
    everything = done(path, "--all").stdout
    first = everything.partition("\nWhich setting to deploy?")[0]
    assert len(re.findall(r"^k=\d+ +\d", first, re.MULTILINE)) == 12
    assert "more;" not in everything


def test_scores_that_are_neither_better_nor_worse_are_printed_and_not_compared(tmp_path):
    path = write_experiment(tmp_path, NO_MODEL, metrics='["inverted_pairs"]')
    for options in ([], ["--all"]):
        result = done(path, *options)
        assert "No metric with scores can rank the settings, so nothing is compared." in result.stderr
        assert re.search(r"^rank, k=3 +\d\.\d{3} \[", result.stdout, re.MULTILINE)
        assert "All differences" not in result.stdout


@pytest.mark.parametrize(
    ("metric", "message"),
    [("inverted_pairs", "how chunks are ordered"), ("bleu", "--metric must be a metric of the experiment: token_f1")],
)
def test_a_metric_that_no_table_can_be_about_costs_nothing(tmp_path, metric, message):
    log = tmp_path / "log"
    path = write_experiment(tmp_path, ORDERS, model(log=str(log)))
    check_refusal(compare(path, "--metric", metric), message)
    assert not log.exists()


@pytest.mark.process
def test_what_a_model_prints_is_no_part_of_it(tmp_path):
    path = write_experiment(tmp_path, ORDERS, '[models.m]\nuse = "tests.compare.answering:chatty"')
    for option in ("--plan", "--yes"):
        process = started(path, "--json", option)
        out, err = process.communicate(timeout=120)
        assert json.loads(out)
        assert err.count("loading weights") == 1
    assert "asked" in err


def test_another_axis_is_compared(tmp_path):
    path = write_experiment(tmp_path, ORDERS, model())
    assert "from the setting that differs only in k," in done(path, "--compare-axis", "k").stdout
    assert "from the setting that differs only in order," in done(path).stdout
    # Where no settings differ in it, it is another one.
    path = write_experiment(tmp_path / "k", 'method = "context_only"\nk = [2, 3]')
    assert "from the setting that differs only in k," in done(path).stdout


# Money and limits


@pytest.mark.process
@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("y\n", 0)])
def test_on_a_terminal_the_user_is_asked(tmp_path, answer, code):
    log = tmp_path / "log"
    path = write_experiment(tmp_path, ORDERS, model(log=str(log)), PRICE)
    ours, theirs = pty.openpty()
    process = started(path, stdin=theirs)
    os.write(ours, answer.encode())
    _, err = process.communicate(timeout=120)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code
    assert "Continue?" in err
    assert bool(calls_in(log)) == (code == 0)


def test_a_limit_stops_the_run_and_a_higher_one_goes_on(tmp_path):
    log = tmp_path / "log"
    path = write_experiment(tmp_path, ORDERS, model(log=str(log)), "[limits]\ncalls = 3")
    check_refusal(compare(path), "the limit of 3 calls is not enough")
    stopped = done(path, "--yes", code=1)
    assert "Stopped: the limit of 3 calls is reached" in stopped.stderr
    assert "raise the limit to continue" in stopped.stderr
    assert len(calls_in(log)) == 3
    done(path, "--limit-calls", 1000)
    assert len(calls_in(log)) == len(set(calls_in(log)))


def test_questions_that_no_metric_can_score_cost_nothing(tmp_path):
    log = tmp_path / "log"
    path = write_experiment(tmp_path, ORDERS, model(log=str(log)))
    questions = path.parent / "data" / "questions.jsonl"
    text = questions.read_text(encoding="utf-8").replace('"answers"', '"anwsers"').replace('"evidence"', '"quotes"')
    questions.write_text(text, encoding="utf-8")
    plan = done(path, "--plan").stdout
    assert "not scored (no question has gold answers): token_f1, " in plan
    assert "not scored (no question has evidence): evidence_coverage" in plan
    assert "inverted_pairs: 4 of 4 questions can be scored" in plan
    assert "a run would be refused: no answer could be scored" in plan
    check_refusal(compare(path, "--yes"), "Error: no answer could be scored")
    assert not log.exists()
    assert not [*tmp_path.glob("*.db*")]


# Failures


def test_failures_are_told_by_cause_and_tried_again_when_asked(tmp_path):
    log = tmp_path / "log"
    path = write_experiment(tmp_path, ORDERS, model(log=str(log), failing="bread rise"))
    result = done(path, code=1)
    assert re.search(r"8 questions in cells failed:\n  8 × ValueError: .*no answer about bread rise", result.stderr)
    assert "--retry-failed" in result.stderr
    made = len(calls_in(log))
    done(path, code=1)
    assert len(calls_in(log)) == made
    Path(f"{log}.mended").touch()
    assert "failed" not in done(path, "--retry-failed").stderr.replace("failed before", "")
    data = json.loads(done(path, "--json").stdout)
    assert data["report"]["answered"] == 32


def test_failures_that_would_occur_again_are_not_to_be_retried(tmp_path):
    path = write_experiment(
        tmp_path, 'method = "context_only"\ntoken_budget = [4, 999]\nheader = "words that do not fit"'
    )
    told = done(path, code=1).stderr
    assert re.search(r"4 × BudgetError: none of the \d+ retrieved chunks fits token_budget=4: ", told)
    assert "A BudgetError would occur again: change the setting as its message says." in told
    assert "--retry-failed" not in told


ERRORS = {
    "no such axis": (NO_MODEL.replace("order", "ordr"), (), "harbour.toml: ", 2),
    "compare axis": (NO_MODEL, ("--compare-axis", "ordr"), "unknown axis 'ordr'; did you mean 'order'?", 2),
    "same": (NO_MODEL, ("--compare-axis", "search"), "search is the same in all settings; axes that can be", 2),
    "ineffective": (NO_MODEL, ("--compare-axis", "model"), "model is the same in all settings", 2),
    "data": (NO_MODEL, ("--compare-axis", "data"), "data sets are not compared; axes that can be compared: ", 2),
    "seeds": (NO_MODEL, ("--compare-axis", "seed"), "averaged over the axis 'seed'", 2),
    "measure and ray": (NO_MODEL, ("--measure", "--ray", "local"), "remove --ray", 2),
    "folder": (NO_MODEL, ("--results", "/nowhere/at/all.db"), "its folder does not exist", 1),
    "folder itself": (NO_MODEL, ("--results", str(ROOT)), " is a folder", 1),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_one_line(tmp_path, case):
    grid, options, words, code = ERRORS[case]
    check_refusal(compare(write_experiment(tmp_path, grid), *options), words, code=code)


# Interruptions


def undisturbed(folder):
    data = json.loads(done(write_experiment(folder, ORDERS, model()), "--json").stdout)
    return data["settings"], data["differences"]


@pytest.mark.process
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_an_interrupted_run_goes_on_where_it_was(tmp_path, number, code):
    log = tmp_path / "log"
    path = write_experiment(tmp_path / "a", ORDERS, model(log=str(log), seconds=0.15), max_concurrency=2)
    process = started(path)
    wait_for_calls(log, 5)
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code
    assert "Traceback" not in err
    kept, before = committed(tmp_path / "a" / "harbour.db"), len(calls_in(log))
    assert 3 <= before < 16
    if number == signal.SIGINT:
        assert len(kept) == before  # what was on its way came in
        assert "Stopped: interrupted." in err
        assert "differs only in order" in out
    result = done(path, "--json")
    later = calls_in(log)[before:]
    assert kept.isdisjoint(line.split()[-1] for line in later)
    data = json.loads(result.stdout)
    assert (data["settings"], data["differences"]) == undisturbed(tmp_path / "b")


# Measuring


def test_measuring_prints_what_answers_took(tmp_path):
    pytest.importorskip("psutil")
    log = tmp_path / "log"
    path = write_experiment(tmp_path, 'method = "stuff"\norder = ["source", "rank"]\nk = 4', model(log=str(log)))
    result = done(path, "--measure")
    assert "have no measurement" not in result.stderr
    for word in ("4 of 4", "cpu percent", "peak", "source", "rank"):
        assert word in result.stdout
    told = f"cpu percent is of one core; usable cores: {usable_cores():g}. Memory was sampled every 10 ms"
    assert told in " ".join(result.stdout.split())
    # It goes on with what is stored, and makes no call twice.
    made = len(calls_in(log))
    shown = json.loads(done(path, "--measure", "--json").stdout)
    assert shown["cores"] == [f"{usable_cores():g}"]
    assert [setting["measurements"]["seconds"]["n"] for setting in shown["settings"]] == [4, 4]
    assert len(calls_in(log)) == made == 8
    # What was answered without it has none.
    stored = write_experiment(tmp_path / "stored", 'method = "stuff"\nk = 2', model())
    done(stored)
    result = done(stored, "--measure")
    assert "4 answers use a stored reply, perhaps of another setting, so they have no measurement" in " ".join(
        result.stderr.split()
    )
    assert "cpu percent" not in result.stdout


GATED = 'method = "stuff"\nk = [2, 4]\norder = ["source", "rank"]'


@pytest.fixture
def path(tmp_path):
    return in_python(write_experiment(tmp_path, GATED, model()))


def test_a_minimum_that_is_not_reached_is_exit_code_1(path):
    result = compare(path, "--fail-under", "token_f1=0.99")
    assert result.exit_code == 1, result.output
    assert "minimum 0.99: not reached" in result.stderr
    result = compare(path, "--fail-under", "token_f1=0.1", "--fail-under", "rouge_l = 0.0")
    assert result.exit_code == 0, result.output
    assert "token_f1 of k=" in result.stderr
    assert "minimum 0.1\n" in result.stderr
    result = compare(path, "--fail-under", "token_f1=0.99", "--fail-under", "rouge_l=0", "--json")
    assert result.exit_code == 1
    checks = json.loads(result.stdout)["checks"]
    assert [(one["metric"], one["minimum"], one["passed"]) for one in checks] == [
        ("token_f1", 0.99, False),
        ("rouge_l", 0.0, True),
    ]


@pytest.mark.parametrize(
    "given", ["token_f1", "token_f1=", "=0.5", "token_f1=nan", "token_f1=high", "inverted_pairs=0.1", "recall=0.1"]
)
def test_a_minimum_that_cannot_be_read_is_refused_before_anything_runs(path, tmp_path, given):
    result = compare(path, "--fail-under", given)
    assert result.exit_code == 2
    assert not (tmp_path / "harbour.db").exists()


def test_a_minimum_concerns_the_setting_to_deploy_in_each_data_set(tmp_path, path):
    # By evidence alone it would be k=4.
    (check,) = json.loads(compare(path, "--fail-under", "evidence_coverage=0", "--json").stdout)["checks"]
    (deployed,) = json.loads(compare(path, "--json").stdout)["deploy"]
    assert check["setting"] == deployed
    folder = tmp_path / "two"
    write_experiment(folder, 'method = "context_only"\nk = 2', '[data.more]\npath = "data/questions.jsonl"')
    file = folder / "harbour.toml"
    result = compare(file, "--fail-under", "evidence_coverage=2")
    assert result.exit_code == 1, result.output
    told = " ".join(result.stderr.split())
    assert told.count("minimum 2: not reached") == 2
    check_refusal(
        compare(file, "--write-profile", folder / "p.toml"), "each data set has a setting to deploy of its own"
    )
    check_refusal(compare(file, "--against", file), "is not a results file", code=1)


def answered_by(folder, function):
    """An experiment with twenty questions: with four, nothing is significant."""
    path = write_experiment(folder, GATED, f'[models.quick]\nuse = "tests.compare.answering:{function}"')
    write_data(folder / "data", documents=5)
    return in_python(path)


def test_what_became_worse_is_exit_code_1(tmp_path):
    folder = tmp_path / "before"
    good = answered_by(folder, "good")
    assert compare(good).exit_code == 0
    old = tmp_path / "old.db"
    shutil.copy(folder / "harbour.db", old)
    # The same is not worse.
    result = compare(good, "--against", old)
    assert result.exit_code == 0, result.output
    assert "not significantly worse" in result.stderr
    bad = answered_by(tmp_path / "now", "bad")
    result = compare(bad, "--against", old, "--metric", "token_f1")
    assert result.exit_code == 1, result.output
    assert f"since {old}, n = 20: worse" in " ".join(result.stderr.split())
    checks = json.loads(compare(bad, "--against", old, "--metric", "token_f1", "--json").stdout)["checks"]
    assert {one["setting"]["order"] for one in checks} == {"source", "rank"}
    assert [one["passed"] for one in checks] == [False] * 4
    assert max(one["difference"]["high"] for one in checks) < 0
    result = compare(bad, "--against", tmp_path / "none.db")
    assert result.exit_code == 2
    assert "file not found" in result.stderr


def test_the_profile_of_the_setting_to_deploy_is_written(path, tmp_path):
    profile = tmp_path / "oprag.toml"
    result = compare(path, "--write-profile", profile)
    assert result.exit_code == 0, result.output
    read = read_profile(profile)
    assert read.context["k"] in (2, 4)
    assert read.about["experiment"] == "harbour"
    assert f"Profile: {profile}" in result.stderr
    # What a run cannot reach is not written.
    limited = compare(
        path, "--write-profile", tmp_path / "other.toml", "--results", tmp_path / "s.db", "--limit-calls", "1", "--yes"
    )
    assert limited.exit_code == 1
    assert not (tmp_path / "other.toml").exists()


RECORDING = RecordingModel(seconds=0.01)


def interrupting(text):
    raise KeyboardInterrupt


INTERRUPTED, RECORDED = experiment(interrupting), experiment(RECORDING)
PAID = experiment(
    None,
    grid={"k": 2, "chunk_size": 32, "method": "context_only"},
    embedders={"words": EmbedderSpec(Words(), "words", paid=True)},
    prices={"words": {"input": 1, "output": 0}},
)


def named(folder, name):
    """What the command line takes for an experiment of this module."""
    file = folder / "one.py"
    file.write_text(f"from tests.cli.test_compare import {name}", encoding="utf-8")
    return f"{file}:{name}"


def test_embeddings_that_cost_money_are_confirmed(tmp_path):
    check_refusal(compare(named(tmp_path, "PAID")), "embedding costs about 0.00", "--yes")
    assert not PAID.embedders["words"].use.documents
    assert compare(named(tmp_path, "PAID"), "--yes").exit_code == 0


def test_what_to_do_after_an_interrupt_is_told(tmp_path):
    result = compare(named(tmp_path, "INTERRUPTED"))
    assert result.exit_code == 130
    assert "run the same command to continue" in result.stderr


def test_the_command_line_decides_how_many_calls_are_made_at_once(tmp_path):
    assert compare(named(tmp_path, "RECORDED"), "--max-concurrency", 1).exit_code == 0
    assert RECORDING.most_at_once == 1


def test_an_experiment_of_a_python_file_is_run_with_limits_of_the_command_line(tmp_path):
    path = in_python(write_experiment(tmp_path, GATED, model(), PRICE))
    limits = ("--limit-calls", 3, "--limit-tokens", 90_000, "--limit-money", 2.5)
    result = compare(path, *limits, "--sample", 2, "--json", "--yes")
    assert result.exit_code == 1
    planned = json.loads(result.stdout)["plan"]
    assert planned["limits"] == {"calls": 3, "tokens": 90_000, "money": 2.5}
    assert planned["questions"] == 2
    assert (tmp_path / "harbour.db").exists()
