"""The package: no module hides a public function, whatever was imported, and no folder bears the name of one."""

import pkgutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

import gemmlab

pytestmark = pytest.mark.sampled(99)

LATER = ("pack", "report", "tune")
"""What the command line does today and the package may export."""
CALLS = """
import importlib, pkgutil
import numpy as np
import gemmlab
for module in pkgutil.walk_packages(gemmlab.__path__, "gemmlab."):
    if not module.name.startswith(("gemmlab.__main__", "gemmlab.torch", "gemmlab.dask", "gemmlab.distributed",
                                   "gemmlab.emulator.isa.")):
        importlib.import_module(module.name)
one = np.ones((2, 2), np.float32)
assert (gemmlab.gemm(one, one) == 2).all()
assert (gemmlab.sgemm(1.0, one, one) == 2).all()
assert gemmlab.sum(one) == 4
assert gemmlab.explain_choice(one, one)
assert gemmlab.blas.sgemm is gemmlab.sgemm
for name in gemmlab.__all__:
    assert name in ("__version__", "blas") or callable(getattr(gemmlab, name)), name
assert gemmlab.check("naive_ijk", sizes=3).passed
assert gemmlab.gemm_group([one], [one])[0].sum() == 8
assert gemmlab.workspace_bytes(one, one) == 0
for call in (gemmlab.bench, gemmlab.explain, gemmlab.profile):
    try:
        call("no such kernel")
    except gemmlab.UsageError:
        continue
    raise AssertionError(call)
for call in (
    lambda: gemmlab.climb("no such operation"),
    lambda: gemmlab.compare("nowhere", "nowhere"),
    lambda: gemmlab.launch("nowhere.cu", "f", 1, 1, []),
):
    try:
        call()
    except gemmlab.GemmlabError:
        continue
    raise AssertionError(call)
"""


def rooms() -> Iterator[str]:
    """The names of folders and files of the package's top level."""
    return (module.name for module in pkgutil.iter_modules(gemmlab.__path__))


@pytest.mark.in_turns(20)
def test_public_functions_are_there_after_every_module_was_imported() -> None:
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", [*(name for name in gemmlab.__all__ if name != "blas"), *LATER])
def test_no_room_bears_the_name_of_a_function(name: str) -> None:
    assert name not in set(rooms())


def test_dir_lists_what_is_public_and_nothing_else() -> None:
    code = "import gemmlab; print(*dir(gemmlab)); gemmlab.launch; import gemmlab.cli.app; print(*dir(gemmlab))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first.split() == second.split() == sorted(gemmlab.__all__)


def test_a_public_name_is_there_and_no_other() -> None:
    assert all(hasattr(gemmlab, name) for name in gemmlab.__all__)
    assert not hasattr(gemmlab, "nosuchname")


def test_every_module_is_named_once() -> None:
    """No two modules of one name, but for those that are alike on purpose: one file a picture, a kernel, a layer."""
    alike = {
        "blocking", "catalog", "cells", "microkernel", "packing", "register_tile", "roofline", "texture",
    }  # fmt: skip
    names = [
        module.name.rsplit(".", 1)[1]
        for module in pkgutil.walk_packages(gemmlab.__path__, "gemmlab.", onerror=lambda _name: None)
        if not module.ispkg
    ]
    twice = {name for name in names if names.count(name) > 1}
    assert twice <= alike, sorted(twice - alike)
