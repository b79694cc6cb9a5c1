"""Experiments on a Ray cluster with two CPUs: the same results, whatever dies."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import psutil
import pytest

from oprag.compare.providers.specs import ModelSpec
from oprag.compare.running.run import RunReport, run
from oprag.errors import ExperimentError
from tests.compare.helpers import RecordingModel, rows, text_of
from tests.integration.spread import SECONDS, SELECT, another_in_each_process, asked_though_kept, calls, spread

ray = pytest.importorskip("ray")

pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("default")]

run_on_ray = partial(run, ray="auto")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """A cluster with two CPUs, which no run must end."""
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    assert ray.is_initialized()
    ray.shutdown()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What a run in one process gives, and the calls that it made."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert run(spread(folder / "log"), folder / "results.db").complete
    return rows(folder / "results.db", SELECT), sorted(call.reply for call in calls(folder / "log"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.db"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def once(condition, action):
    """A callback that does something as soon as something is so."""
    done: list[RunReport] = []

    def on_progress(now):
        if not done and condition():
            done.append(now)
            action()

    return on_progress


def test_results_are_those_of_one_process(undisturbed, path, log):
    told: list[RunReport] = []
    small = spread(log, seconds=0.01, max_concurrency=5)
    report = run_on_ray(small, path, on_progress=told.append)
    assert report.complete, text_of(report)
    assert (report.outcome, report.remaining, report.failed) == ("complete", 0, {})
    assert rows(path, SELECT) == undisturbed[0]
    # Though some calls are needed by several cells.
    assert sorted(call.reply for call in calls(log)) == undisturbed[1]
    made = len(calls(log))
    assert report.spent.calls == made
    assert len({call.process for call in calls(log)}) == 2
    assert os.getpid() not in {call.process for call in calls(log)}
    assert (told[-1].done, told[-1].total, told[-1].remaining) == (report.total, report.total, 0)
    assert told[-1].spent == report.spent
    assert told[-1].running == 0
    assert [now.done for now in told] == sorted(now.done for now in told)
    assert rows(path, "SELECT outcome FROM runs") == [("complete",)]
    again = run_on_ray(small, path)
    assert (again.complete, again.spent) == (True, report.spent)
    assert len(calls(log)) == made


def test_no_more_calls_at_the_same_time_than_allowed(path, log):
    grid = {"k": 4, "chunk_size": 32, "repeat": [1, 2]}
    seconds = 0.4
    assert run_on_ray(spread(log, seconds=seconds, grid=grid, max_concurrency=3), path).complete
    times = sorted(call.at for call in calls(log))
    assert len(times) == 12
    together = [sum(start <= other < start + seconds for other in times) for start in times]
    assert max(together) <= 3
    # Three calls, though they are not divisible among two CPUs.
    assert max(together) == 3


def test_a_worker_is_killed_midway(undisturbed, path, log):
    small = spread(log, seconds=0.05)
    on_progress = once(lambda: len(calls(log)) > 20, lambda: os.kill(calls(log)[-1].process, signal.SIGKILL))
    report = run_on_ray(small, path, on_progress=on_progress)
    assert report.complete, text_of(report)
    # What was on its way there alone was lost.
    assert report.spent.calls <= len(calls(log)) <= report.spent.calls + small.max_concurrency
    assert not asked_though_kept(path, calls(log))
    assert rows(path, SELECT) == undisturbed[0]


def test_limits_hold_over_all_processes(undisturbed, path, log):
    report = run_on_ray(spread(log, limits={"calls": 41}), path)
    assert report.outcome.startswith("the limit of 41 calls is reached: ")
    assert report.spent.calls == 41 == len(calls(log))
    assert report.remaining > 0
    again = run_on_ray(spread(log, limits={"calls": 60}), path)
    assert again.spent.calls == 60 == len(calls(log))
    assert run_on_ray(spread(log), path).complete
    assert rows(path, SELECT) == undisturbed[0]
    assert sorted(call.reply for call in calls(log)) == undisturbed[1]


def test_what_cannot_be_sent(path):
    with pytest.raises(ExperimentError, match=r"a model cannot be sent to another process: .*; define it in a"):
        run_on_ray(spread(None, models={"m": ModelSpec(RecordingModel(), "recording")}), path)
    assert not path.exists()


def test_a_worker_that_has_another_model_is_refused(path):
    small = spread(None, models={"m": ModelSpec(another_in_each_process())})
    with pytest.raises(ExperimentError, match=r"the model 'm' differs on .*: something"):
        run_on_ray(small, path)
    assert rows(path, "SELECT count(*) FROM replies") == [(0,)]
    assert rows(path, "SELECT outcome FROM runs")[0][0].startswith("ExperimentError")


def test_another_cluster_than_the_one_in_use_is_refused(path, log):
    with pytest.raises(ExperimentError, match="this process is already connected to a Ray cluster"):
        run(spread(log), path, ray="127.0.0.1:1")
    assert not path.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_driver_is_interrupted_or_killed_with_its_own_cluster(number, undisturbed, path, log):
    """It prints nothing of Ray's, and nothing of its cluster is left."""
    command = [sys.executable, "-m", "tests.integration.spread", str(path), str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        limit = time.monotonic() + 60
        while len(calls(log)) < 20 and time.monotonic() < limit:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        cluster = psutil.Process(process.pid).children(recursive=True)
        names = {process.pid: process.name() for process in cluster}
        process.send_signal(number)
        output, errors = process.communicate(timeout=60)
    # Ray's own helpers of a killed driver take their time.
    cluster = [process for process in cluster if "Agent" not in names.get(process.pid, "")]
    _, alive = psutil.wait_procs(cluster, timeout=30)
    assert not alive
    if number == signal.SIGINT:
        assert (process.returncode, output, errors) == (0, "interrupted False\n", "")
        assert rows(path, "SELECT count(*) FROM replies") == [(len(calls(log)),)]
    else:
        assert process.returncode == -number
    before = len(calls(log))
    assert before < len(undisturbed[1])
    assert run_on_ray(spread(log, seconds=SECONDS), path).complete
    assert rows(path, SELECT) == undisturbed[0]
    assert not asked_though_kept(path, calls(log))
