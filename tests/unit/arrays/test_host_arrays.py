"""Arrays of other packages in this machine's memory: nothing is copied, and what comes back is of the same package."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gemmlab
from gemmlab import ArgumentTypeError, UsageError, api
from gemmlab.arrays.on_gpu import is_device_array
from gemmlab.arrays.on_host import host_view, is_host_array, like
from support.gpu_arrays import OnGpu
from support.host_packages import Old, Plain, Standard, Tensor

RNG = np.random.default_rng(8)
A, B, C = (RNG.standard_normal(shape).astype(np.float32) for shape in ((30, 20), (20, 10), (30, 10)))

needs_versions = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="this NumPy's DLPack does not say what may be written to"
)


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> None:
    fake: Any = types.ModuleType("torch")
    fake.Tensor, fake.float32, fake.from_numpy = Tensor, np.dtype(np.float32), Tensor
    monkeypatch.setitem(sys.modules, "torch", fake)


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> type[Plain]:
    """Arrays of a package that has `from_dlpack` at its top."""
    kind = type("Vector", (Plain,), {"__module__": "arrays.core"})
    module: Any = types.ModuleType("arrays")
    module.from_dlpack = lambda array: kind(np.from_dlpack(array))
    monkeypatch.setitem(sys.modules, "arrays", module)
    return kind


def works_with(make: Callable[[npt.NDArray[np.float32]], Any], kind: type, values: Callable[[Any], Any]) -> None:
    """Products and sums of what `make` makes of NumPy's arrays; `values` leads back."""
    result = gemmlab.gemm(make(A), make(B.T), trans_b=True)
    assert type(result) is kind
    np.testing.assert_allclose(values(result), A @ B, rtol=1e-4, atol=1e-5)
    total = gemmlab.sum(make(A))
    assert type(total) is kind
    assert values(total).shape == ()
    assert values(total) == pytest.approx(A.sum(dtype=np.float64), abs=1e-3)
    assert values(gemmlab.sum(make(A), 0, keepdims=True)).shape == (1, 20)
    assert gemmlab.explain_choice(make(A), make(B)).where == "cpu"


def writes_to(make: Callable[[npt.NDArray[np.float32]], Any]) -> None:
    """`out`, and `c` that is `out`, change in place."""
    memory = C.copy()
    out = make(memory)
    assert gemmlab.gemm(make(A), make(B), beta=2.0, c=out, out=out) is out
    np.testing.assert_allclose(memory, A @ B + 2 * C, rtol=1e-4, atol=1e-5)
    row = np.zeros(20, np.float32)
    held = make(row)
    assert gemmlab.sum(make(A), 0, out=held) is held
    np.testing.assert_allclose(row, A.sum(0), rtol=1e-4, atol=1e-5)


@pytest.mark.in_turns(20)
def test_arrays_of_a_package_with_from_dlpack(package: type[Plain]) -> None:
    for kind in (package, Standard):
        works_with(kind, kind, lambda found: found.values)


def test_without_one_the_result_is_numpys() -> None:
    works_with(Plain, np.ndarray, np.asarray)
    works_with(Old, np.ndarray, np.asarray)


@needs_versions
@pytest.mark.parametrize("make", [Plain, Standard])
def test_what_may_be_written_to_is_written_in_place(make: type[Plain]) -> None:
    writes_to(make)


@pytest.mark.usefixtures("torch")
def test_tensors_in_a_tensor_out() -> None:
    works_with(Tensor, Tensor, lambda found: found.values)
    writes_to(Tensor)


@pytest.mark.usefixtures("torch")
def test_every_option_holds_for_tensors_too() -> None:
    a, b, c = Tensor(A), Tensor(B), Tensor(C[:, 0])
    found = gemmlab.gemm(b, a, alpha=0.5, beta=-1.0, c=c, trans_a=True, trans_b=True, threads=1, precision="tf32")
    np.testing.assert_allclose(found.values, 0.5 * (A @ B).T - C[:, 0], rtol=1e-4, atol=1e-5)
    for options, said in (
        ({"threads": 0}, "threads is 0"),
        ({"kernel": "no_such"}, "no_such"),
        ({"config": {"NO_SUCH": 1}}, "NO_SUCH"),
        ({"precision": "low"}, "low"),
    ):
        with pytest.raises(UsageError, match=said):
            gemmlab.gemm(a, b, **options)
    with pytest.raises(UsageError, match="threads is 0"):
        gemmlab.sum(a, threads=0)


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("make", [Plain, Standard, Tensor])
def test_nothing_is_copied(make: type[Plain]) -> None:
    array = make(A)
    assert is_host_array(array)
    assert np.shares_memory(host_view("gemm", "a", array), A)
    back = like(array, A)
    assert np.shares_memory(getattr(back, "values", back), A)


def test_what_is_no_array_of_another_package_here() -> None:
    on_gpu = Plain(A)
    on_gpu.lies = 2
    assert [is_host_array(x) for x in (A, np.float32(1), [1.0], 3, OnGpu(A), on_gpu, None)] == [False] * 7
    pinned = Plain(A)
    pinned.lies = 3
    assert is_host_array(pinned)


@pytest.mark.usefixtures("torch")
def test_torch_is_asked_where_its_tensors_lie() -> None:
    tensor = Tensor(A)
    assert is_host_array(tensor)
    assert not is_device_array(tensor)
    for kind in ("cuda", "meta"):
        tensor.device, tensor.is_cuda = types.SimpleNamespace(type=kind), kind == "cuda"
        # One that lies nowhere is nobody else's to refuse.
        assert is_host_array(tensor) == (kind == "meta")
        assert is_device_array(tensor) == (kind == "cuda")


def learns(x: npt.NDArray[Any]) -> Tensor:
    tensor = Tensor(x)
    tensor.requires_grad = True
    return tensor


def fixed(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    x = x.copy()
    x.flags.writeable = False
    return x


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize(
    ("operands", "said"),
    [
        ({"a": Tensor(A.astype(np.float64))}, r"a has dtype float64, not float32; a\.float\(\) converts it"),
        (
            {"out": Tensor(C.astype(np.float64))},
            r"out has dtype float64, not float32; pass a float32 array",
        ),
        ({"a": learns(A)}, r"a requires a gradient.* a\.detach\(\) goes without, and gemmlab\.torch\.gemm has"),
        ({"out": learns(C)}, r"out requires a gradient.* out\.detach\(\) goes without$"),
        ({"b": B}, r"b is numpy\.ndarray and a is .*\.Tensor; all arrays of a call must be of one package"),
        ({"a": A}, r"a is numpy\.ndarray and b is .*Tensor"),
        ({"b": Plain(B)}, r"b is .*Plain and a is .*Tensor"),
        ({"out": C}, r"out is numpy\.ndarray and a is .*Tensor"),
        ({"a": A, "b": B, "out": Tensor(C)}, r"a is numpy\.ndarray and out is .*Tensor"),
        ({"a": A, "b": B, "out": OnGpu(C)}, r"a is numpy\.ndarray and out is .*OnGpu on a GPU"),
        ({"a": OnGpu(A)}, r"b is .*Tensor, which lies on no GPU; other operands of this call do"),
        ({"b": [[1.0]]}, r"b is builtins\.list and a is .*Tensor"),
        ({"a": Plain(A.astype(np.float16)), "b": Plain(B)}, "a has dtype float16, not native float32"),
        pytest.param(
            {"a": Plain(A), "b": Plain(B), "out": Plain(fixed(C))},
            r"out is .*Plain, which cannot be written to by DLPack",
            marks=needs_versions,
        ),
        ({"a": Old(A), "b": Old(B), "out": Old(C)}, r"out is .*Old, which cannot be written to by DLPack"),
    ],
)
def test_what_cannot_be_used_is_refused(operands: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentTypeError, match=said):
        gemmlab.gemm(**{"a": Tensor(A), "b": Tensor(B), **operands})


@pytest.mark.usefixtures("torch")
def test_what_a_sum_refuses() -> None:
    with pytest.raises(ArgumentTypeError, match=r"x has dtype float64, not float32; x\.float\(\) converts it"):
        gemmlab.sum(Tensor(A.astype(np.float64)))
    with pytest.raises(ArgumentTypeError, match=r"x is numpy\.ndarray and out is .*Tensor"):
        gemmlab.sum(A, 0, out=Tensor(A[0].copy()))
    with pytest.raises(UsageError, match=r"out has shape \(10,\); the result has \(20,\)"):
        gemmlab.sum(Tensor(A), 0, out=Tensor(C[0].copy()))


def python_calls(call: Callable[[], object]) -> list[str]:
    """The Python functions that a call enters."""
    entered: list[str] = []
    sys.setprofile(lambda frame, event, _what: entered.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return entered[1:]


def test_numpys_own_arrays_are_not_asked_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_again", None)
    gemmlab.gemm(A, B)
    if api._entry is None:
        pytest.skip("no compiled entry for this interpreter")
    out = np.empty((30, 10), np.float32)
    assert python_calls(lambda: gemmlab.gemm(A, B, out=out)) == ["gemm"]
    assert python_calls(lambda: gemmlab.gemm(A, B)) == ["gemm"]
    gemmlab.gemm(A, B, precision="float32")
    assert python_calls(lambda: gemmlab.gemm(A, B, precision="float32")) == ["gemm"]
    for axis in (None, 0, (0, 1)):
        assert "is_host_array" not in python_calls(lambda: gemmlab.sum(A, axis))  # noqa: B023 - called at once
    assert "is_host_array" in python_calls(lambda: gemmlab.gemm(Plain(A), Plain(B)))


@pytest.mark.in_turns(20)
def test_no_package_is_imported_for_numpys_arrays(tmp_path: Path) -> None:
    for name in ("torch", "jax", "cupy"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'{__name__} was imported')\n", encoding="utf-8")
    program = "import gemmlab, numpy; x = numpy.ones((3, 3), 'f4'); print(gemmlab.gemm(x, x).sum(), gemmlab.sum(x, 0))"
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert (done.returncode, done.stdout.strip()) == (0, "27.0 [3. 3. 3.]"), done.stderr


def test_real_tensors() -> None:
    torch: Any = pytest.importorskip("torch")
    works_with(torch.from_numpy, torch.Tensor, lambda found: found.numpy())
    writes_to(torch.from_numpy)
    a, b = torch.from_numpy(A), torch.from_numpy(B)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: gemmlab.gemm(a.clone().requires_grad_(), b), r"a requires a gradient.* a\.detach\(\)"),
        (lambda: gemmlab.gemm(a, torch._neg_view(b)), r"b is negated only .* b\.resolve_neg\(\) does"),
        (lambda: gemmlab.gemm(a, b.bfloat16()), r"b has dtype torch\.bfloat16, not float32; b\.float\(\) converts it"),
        (lambda: gemmlab.gemm(a.to_sparse(), b), r"a has layout torch\.sparse_coo.* a\.to_dense"),
        (lambda: gemmlab.gemm(a.to("meta"), b.to("meta")), "a is a meta tensor: it has a shape and no data"),
        (lambda: gemmlab.sum(a.to("meta")), "x is a meta tensor"),
        (lambda: gemmlab.gemm(a, B), r"b is numpy\.ndarray and a is torch\.Tensor"),
    ]
    for call, said in refused:
        with pytest.raises(ArgumentTypeError, match=said):
            call()
    with pytest.raises(UsageError, match="elements of out share memory"):
        gemmlab.gemm(a, b, out=torch.zeros(10).expand(30, 10))


def test_real_arrays_of_jax_never_change() -> None:
    numpy = pytest.importorskip("jax.numpy")
    kind = type(numpy.ones(1))
    works_with(numpy.asarray, kind, np.asarray)
    with pytest.raises(TypeError, match=r"out is jaxlib\..*, which cannot be written to"):
        gemmlab.gemm(numpy.asarray(A), numpy.asarray(B), out=numpy.asarray(C))
