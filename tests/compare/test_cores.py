import os
import sys

import pytest

from oprag.compare.cores import describe_cores, usable_cores
from tests.helpers import run_python

pytestmark = pytest.mark.process


@pytest.fixture
def grouped(tmp_path, monkeypatch):
    """Puts this process into a control group, with these files in the folder of the groups."""

    def put(membership, **files):
        (tmp_path / "membership").write_text(f"4:memory:/elsewhere\n0::{membership}\n")
        for name, content in files.items():
            folder = tmp_path / "groups" / name.replace("_", "/")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "cpu.max").write_text(f"{content}\n")
        monkeypatch.setattr("oprag.compare.cores.MEMBERSHIP", tmp_path / "membership")
        monkeypatch.setattr("oprag.compare.cores.CONTROL_GROUPS", tmp_path / "groups")

    return put


def test_without_a_limit_all_cores_that_the_affinity_allows(grouped):
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    for files in ({}, {"jobs": "max 100000"}, {"jobs": "99900000 100000"}, {"jobs": "damaged"}):
        grouped("/jobs", **files)
        assert usable_cores() == allowed
        assert "limit" not in describe_cores()


@pytest.mark.skipif(sys.platform != "linux", reason="affinity")
def test_the_affinity_of_this_process():
    code = """
import os
from oprag.compare.cores import describe_cores, usable_cores
os.cpu_count = lambda: 64
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(usable_cores() <= 1, describe_cores().partition(" (")[0])
"""
    assert run_python(code) == "True 1 of 64\n"


@pytest.mark.parametrize(
    ("membership", "files", "limit"),
    [
        ("/", {"": "50000 100000"}, 0.5),
        ("/jobs/one", {"jobs_one": "20000 100000"}, 0.2),
        # In a container, the path may be that of the host, and the mount is the container's own group.
        ("/host/docker/1f7d", {"": "25000 50000"}, 0.5),
    ],
)
def test_the_limit_of_a_container(grouped, monkeypatch, membership, files, limit):
    grouped(membership, **files)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert usable_cores() == limit
    assert describe_cores() == f"{limit} of 64 (limit of the container)"


def test_cores_are_counted_without_psutil():
    code = """
import sys
sys.modules["psutil"] = None
from oprag.compare.cores import usable_cores
print(usable_cores() > 0)
"""
    assert run_python(code) == "True\n"
