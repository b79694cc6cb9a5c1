"""What a process uses in a while, and the cores that it may use."""

import mmap
import os
import time

import pytest

from oprag.compare.meter import Meter, usable_cores

MIB = 2**20


def fill(size: int) -> None:
    """Hold so many bytes of memory for a moment, each page of it touched, and give them back to the system."""
    with mmap.mmap(-1, size) as memory:
        for place in range(0, size, mmap.PAGESIZE):
            memory[place] = 1
        time.sleep(0.1)


@pytest.fixture(autouse=True)
def _with_psutil():
    pytest.importorskip("psutil")


def test_sleeping_takes_time_and_no_processor():
    before, used = time.perf_counter(), time.process_time()
    with Meter() as meter:
        time.sleep(0.2)
    assert 0.2 <= meter.measurement.seconds <= time.perf_counter() - before
    # Watching is not counted.
    assert meter.measurement.cpu_seconds < time.process_time() - used
    assert meter.measurement.cpu_seconds < 0.1


def test_the_peak_shows_though_the_memory_was_given_back():
    with Meter() as quiet:
        time.sleep(0.1)
    with Meter() as meter:
        fill(100 * MIB)
    with Meter() as after:
        pass
    grown = meter.measurement.peak_memory_mib - quiet.measurement.peak_memory_mib
    assert 95 < grown < 120
    # An earlier peak does not count; loaded modules do.
    assert 10 < after.measurement.peak_memory_mib < quiet.measurement.peak_memory_mib + 20


# Cores


@pytest.fixture
def grouped(tmp_path, monkeypatch):
    """Puts this process into a control group, with these files in the folder of the groups."""

    def put(membership, **files):
        (tmp_path / "membership").write_text(f"4:memory:/elsewhere\n0::{membership}\n")
        for name, content in files.items():
            folder = tmp_path / "groups" / name.replace("_", "/")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cpu.max").write_text(f"{content}\n")
        monkeypatch.setattr("oprag.compare.meter._MEMBERSHIP", tmp_path / "membership")
        monkeypatch.setattr("oprag.compare.meter._CONTROL_GROUPS", tmp_path / "groups")

    return put


def test_without_a_limit_all_cores_that_the_affinity_allows(grouped):
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for files in ({}, {"jobs": "max 100000"}, {"jobs": "99900000 100000"}, {"jobs": "damaged"}):
        grouped("/jobs", **files)
        assert usable_cores() == allowed


@pytest.mark.parametrize(
    ("membership", "files", "limit"),
    [
        ("/", {"": "50000 100000"}, 0.5),
        ("/jobs/one", {"jobs_one": "20000 100000"}, 0.2),
        # In a container, the path may be that of the host, and the mount is the container's own group.
        ("/host/docker/1f7d", {"": "25000 50000"}, 0.5),
    ],
)
def test_the_limit_of_a_container(grouped, membership, files, limit):
    grouped(membership, **files)
    assert usable_cores() == limit
