"""Reaching a Ray cluster."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from oprag.errors import ExperimentError, MissingExtraError
from oprag.masking import describe

__all__ = ["check_address", "connected", "load_ray"]

_NAMES = ("local", "auto")
_PATIENCE = 5.0  # seconds; Ray itself tries for minutes, and then ends the process


def load_ray() -> Any:
    """The library.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError as error:
        raise MissingExtraError("Running on a Ray cluster", "ray") from error
    return ray


def check_address(address: str | None) -> None:
    """Refuse an address where nothing answers, or from where the results file would not be this machine's.

    Raises:
        ExperimentError: It is such an address.
    """
    if address is None or address in _NAMES:
        return
    if "://" in address:
        raise ExperimentError(
            f"cannot run at {address!r}: a Ray client runs elsewhere, where the results file is not; begin the run on "
            "a machine of the cluster, with the address HOST:PORT or auto",
            address,
        )
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise ExperimentError(
            f"the address of a Ray cluster must be local, auto or HOST:PORT, got {describe(address)}", address
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ExperimentError(f"no Ray cluster answers at {address!r}: {error}", address) from error


@contextmanager
def connected(ray: Any, address: str | None) -> Iterator[None]:
    """Connect to a cluster, or start one; one that this process is connected to is used, and left alone.

    Args:
        ray: The library.
        address: HOST:PORT, "auto" for the cluster of this machine, "local" for one that is started here and ends with
            the block, None for what `ray.init` takes it for.

    Raises:
        ExperimentError: There is no such cluster, or the process is connected to another one.
    """
    if ray.is_initialized():
        _check_same(ray, address)
        yield
        return
    check_address(address)
    logger = logging.getLogger("ray")
    level = logger.level
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    logger.setLevel(logging.ERROR)
    try:
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
        except (OSError, RuntimeError, ValueError) as error:
            where = "this machine" if address is None or address in _NAMES else repr(address)
            raise ExperimentError(f"cannot use a Ray cluster at {where}: {error}", address) from error
        yield
    finally:
        ray.shutdown()
        logger.setLevel(level)
        if main and handler is not None:
            signal.signal(signal.SIGTERM, handler)


def _check_same(ray: Any, address: str | None) -> None:
    there = str(ray.get_runtime_context().gcs_address)
    # The same machine has several names.
    if address is not None and address not in _NAMES and address.rpartition(":")[2] != there.rpartition(":")[2]:
        raise ExperimentError(
            f"this process is connected to the Ray cluster at {there!r}, got the address {address!r}; leave it out, or "
            "disconnect with ray.shutdown() before",
            address,
        )
