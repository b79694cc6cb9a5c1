"""The entry point without the extra, and the progress bar."""

import subprocess
import sys

from oprag.cli.late_progress import LateProgress


def test_without_the_extra_one_sentence_says_what_to_install():
    code = "import sys; sys.modules['typer'] = None; from oprag.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "The command line needs an optional dependency: pip install 'oprag[cli]'\n"


def test_the_console_script_runs():
    code = "import sys; sys.argv = ['oprag', '--version']; from oprag.cli import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.startswith("oprag ")


def test_the_progress_bar_waits_a_second(monkeypatch):
    clock = iter([0.0, 0.5, 1.5, 1.6])
    monkeypatch.setattr("oprag.cli.late_progress.time.monotonic", lambda: next(clock))
    with LateProgress("embedding", "chunks") as progress:
        started = []
        monkeypatch.setattr(progress._bar, "start", lambda: started.append(True))
        progress.update(1, 3)
        assert not started
        progress.update(2, 3)
        assert started
