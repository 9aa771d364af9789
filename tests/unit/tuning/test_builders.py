"""Waiting for compilers."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from gemmlab.core.errors import DeviceError
from gemmlab.kernels.by_name import named_kernel
from gemmlab.tuning import builders as builders_module
from gemmlab.tuning.builders import Builders, Code

KEYS = [(name, "sm_90", ()) for name in "abc"]


@pytest.fixture
def builders(monkeypatch: pytest.MonkeyPatch) -> Builders:
    found = Builders(named_kernel("naive"), 1)
    monkeypatch.setattr(found, "_under_way", {key: Future[Code]() for key in KEYS})
    return found


@pytest.mark.parametrize(("done", "expected"), [((), 0), ((1,), 1), ((2,), 2), ((1, 2), 1)])
def test_the_first_that_is_compiled_is_returned(builders: Builders, done: tuple[int, ...], expected: int) -> None:
    for index in done:
        builders._under_way[KEYS[index]].set_result(Code(1.0))
    assert builders.soonest(KEYS, 0.01) == expected


def test_compilers_are_idle_when_every_compilation_has_ended(builders: Builders) -> None:
    for key in KEYS:
        assert not builders.idle(0.01)
        builders._under_way[key].set_result(Code(1.0))
    assert builders.idle(0.0)


def test_the_end_of_the_compilers_is_no_fault_of_the_program(builders: Builders) -> None:
    """The journal of a search keeps faults for good."""
    builders._under_way[KEYS[0]].set_exception(BrokenProcessPool())
    with pytest.raises(DeviceError, match=r'have ended: .* if __name__ == "__main__":'):
        builders.get(KEYS[0], 1.0)
    builders._under_way[KEYS[1]].set_exception(ValueError("no such file"))
    assert builders.get(KEYS[1], 1.0) == Code(0.0, "the compiler's process failed: no such file")


@pytest.mark.skipif(sys.platform == "win32", reason="no such masks")
def test_a_process_that_starts_while_interrupts_are_held_is_not_stopped_by_one() -> None:
    program = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"

    def held() -> str:
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    with builders_module._no_interrupts():
        assert held() == "True\n"
    assert held() == "False\n"
