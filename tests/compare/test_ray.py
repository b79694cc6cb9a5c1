"""What can be said about running on a cluster without one."""

import socket
import subprocess
import sys

import pytest

from oprag.compare.ray import check_address
from oprag.compare.running.run import run
from oprag.errors import ExperimentError, MissingExtraError, OptionError
from tests.compare.helpers import RecordingModel, experiment


def test_without_ray_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"Running on a Ray cluster requires .*pip install 'oprag\[ray\]'"):
        run(experiment(RecordingModel()), tmp_path / "results.db", ray="local")
    with pytest.raises(OptionError, match="answers are measured in this process"):
        run(experiment(RecordingModel()), tmp_path / "results.db", ray="local", measure=True)
    assert not (tmp_path / "results.db").exists()


def test_it_is_imported_without_ray():
    code = "import sys, oprag.compare.running.run; print('ray' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


def test_addresses():
    for name in ("local", "auto"):
        check_address(name)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_address(f"127.0.0.1:{port}")
    # It is told at once.
    with pytest.raises(ExperimentError, match=rf"no Ray cluster answers at '127.0.0.1:{port}': "):
        check_address(f"127.0.0.1:{port}")
    with pytest.raises(ExperimentError, match="no Ray cluster answers"):
        check_address("127.0.0.1:99999")
    for address in ("ray://head:10001", "head", "head:port", ""):
        with pytest.raises(ExperimentError, match="must be local, auto or HOST:PORT, got"):
            check_address(address)
