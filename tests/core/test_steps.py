import asyncio
import threading

import pytest

from oprag.steps import Step, Steps, run_async, run_sync


def doubled(number: int) -> Steps[int]:
    first: int = yield Step(lambda: number)
    second: int = yield Step(lambda: first, None)
    return first + second


def recovering() -> Steps[str]:
    try:
        yield Step(lambda: 1 // 0)
    except ZeroDivisionError as error:
        return f"failed: {error}"
    return "went well"


def failing() -> Steps[None]:
    yield Step(lambda: 1 // 0)


def empty() -> Steps[str]:
    return "nothing to do"
    yield


def test_what_is_yielded_is_done_and_sent_back():
    assert run_sync(doubled(4)) == asyncio.run(run_async(doubled(4))) == 8
    assert run_sync(empty()) == asyncio.run(run_async(empty())) == "nothing to do"


def test_a_failure_reaches_the_body():
    assert (
        run_sync(recovering()) == asyncio.run(run_async(recovering())) == "failed: integer division or modulo by zero"
    )
    with pytest.raises(ZeroDivisionError):
        run_sync(failing())
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run_async(failing()))


def test_async_steps_are_awaited_and_others_run_in_a_thread():
    async def asynchronous() -> str:
        return f"awaited in {threading.current_thread().name}"

    def both() -> Steps[tuple[str, str]]:
        awaited = yield Step(lambda: "not this one", asynchronous)
        threaded = yield Step(lambda: threading.current_thread().name)
        return awaited, threaded

    awaited, threaded = asyncio.run(run_async(both()))
    assert awaited == f"awaited in {threading.main_thread().name}"
    assert threaded != threading.main_thread().name


def test_a_step_of_a_step():
    def outer() -> Steps[int]:
        return (yield from doubled(3)) + 1

    assert run_sync(outer()) == 7
