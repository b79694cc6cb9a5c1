"""What can be said about running on a cluster without one."""

import socket
import subprocess
import sys

import pytest

from oprag.compare.ray import check_address, run_on_ray
from oprag.errors import ExperimentError, MissingExtraError
from tests.compare.helpers import RecordingModel, experiment


def test_without_ray_nothing_is_begun(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"Running on a Ray cluster requires .*pip install 'oprag\[ray\]'"):
        run_on_ray(experiment(RecordingModel()), tmp_path / "results.db")
    assert not (tmp_path / "results.db").exists()


def test_it_is_imported_without_ray():
    code = "import sys, oprag.compare.ray; print('ray' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


@pytest.mark.parametrize("address", [None, "local", "auto"])
def test_addresses_that_ray_knows(address):
    check_address(address)


def test_an_address_where_something_answers():
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_address(f"127.0.0.1:{server.getsockname()[1]}")


def test_an_address_where_nothing_answers_is_told_at_once():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ExperimentError, match=rf"no Ray cluster answers at '127.0.0.1:{port}': "):
        check_address(f"127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("ray://head:10001", "a Ray client runs the experiment on another machine"),
        ("head", "must be local, auto or HOST:PORT, got 'head'"),
        ("head:port", "must be local, auto or HOST:PORT"),
        ("127.0.0.1:99999", "no Ray cluster answers"),
        ("", "must be local, auto or HOST:PORT"),
    ],
)
def test_addresses_that_cannot_be(address, words):
    with pytest.raises(ExperimentError, match=words):
        check_address(address)
