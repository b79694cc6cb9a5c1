"""A process may end while its threads still write to a database of ours."""

import subprocess
import sys

import pytest

WRITING = """
import sys, threading, time
from oprag.compare.db.records import FailedCall
from oprag.compare.db.results_file import ResultsFile

file = ResultsFile(sys.argv[1])
file.begin("x", {}, [], [], {})

def write():
    while True:
        file.put([FailedCall("key", "model", "step", "Error", "message " * 500, 0.1)])

for _ in range(3):
    threading.Thread(target=write, daemon=True).start()
time.sleep(0.3)
"""


@pytest.mark.process
def test_the_end_of_a_process_does_not_close_a_database_under_a_thread_that_writes(tmp_path):
    # It crashed two times in three.
    for number in range(6):
        command = [sys.executable, "-c", WRITING, str(tmp_path / f"{number}.db")]
        assert subprocess.run(command, check=False, timeout=60).returncode == 0
