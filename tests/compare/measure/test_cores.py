import os
import sys
from pathlib import Path

import pytest

from oprag.compare.measure.usage import usable_cores
from tests.helpers import run_python

NOWHERE = Path("/nowhere/at/all")


@pytest.fixture
def cores(tmp_path):
    """The cores with these lines of memberships and these files of control groups."""

    def count(memberships, files):
        (tmp_path / "cgroup").write_text("".join(f"{line}\n" for line in memberships))
        for name, content in files.items():
            path = tmp_path / "groups" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{content}\n")
        return usable_cores(tmp_path / "cgroup", tmp_path / "groups")

    return count


def test_without_control_groups_all_that_the_affinity_allows():
    assert 1 <= usable_cores(NOWHERE, NOWHERE) <= (os.cpu_count() or 1)


@pytest.mark.skipif(sys.platform != "linux", reason="affinity")
def test_the_affinity_of_this_process():
    code = """
import os
from oprag.compare.measure.usage import usable_cores
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(usable_cores() <= 1)
"""
    assert run_python(code) == "True\n"


@pytest.mark.parametrize(
    ("memberships", "files", "quota"),
    [
        (["0::/"], {"cpu.max": "50000 100000"}, 0.5),
        (["0::/jobs/one"], {"jobs/one/cpu.max": "20000 100000"}, 0.2),
        # The tightest of the groups around it.
        (["0::/jobs/one"], {"jobs/cpu.max": "10000 100000", "jobs/one/cpu.max": "40000 100000"}, 0.1),
        (["0::/jobs/one"], {"jobs/cpu.max": "40000 100000", "jobs/one/cpu.max": "10000 100000"}, 0.1),
        # In a container, the path may be that of the host, and the mount is the container's own group.
        (["0::/host/docker/1f7d"], {"cpu.max": "25000 50000"}, 0.5),
        (
            ["5:memory:/", "4:cpu,cpuacct:/jobs"],
            {"cpu,cpuacct/jobs/cpu.cfs_quota_us": "30000", "cpu,cpuacct/jobs/cpu.cfs_period_us": "100000"},
            0.3,
        ),
        (["4:cpu:/"], {"cpu/cpu.cfs_quota_us": "75000", "cpu/cpu.cfs_period_us": "100000"}, 0.75),
        (["4:cpu,cpuacct:/"], {"cpu/cpu.cfs_quota_us": "75000", "cpu/cpu.cfs_period_us": "100000"}, 0.75),
    ],
)
def test_a_quota_of_processor_time(cores, memberships, files, quota):
    assert cores(memberships, files) == quota


@pytest.mark.parametrize(
    ("memberships", "files"),
    [
        (["0::/"], {"cpu.max": "max 100000"}),
        (["0::/"], {"cpu.max": "99900000 100000"}),
        (["0::/elsewhere"], {"jobs/cpu.max": "10000 100000"}),
        (["4:cpu:/"], {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}),
        (["4:memory:/"], {"memory/cpu.cfs_quota_us": "100", "memory/cpu.cfs_period_us": "100000"}),
    ],
)
def test_no_quota_that_is_tighter_than_the_cores(cores, memberships, files):
    assert cores(memberships, files) == usable_cores(NOWHERE, NOWHERE)
