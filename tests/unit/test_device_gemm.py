"""`gemmlab.gemm` of arrays on a GPU, with driver, packages and kernels played by Python: what is launched where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from cuda_source import needs_compiler
from gpu_arrays import Array, GemmDriver, OnGpu, Tensor, play_cupy, play_torch, rows, transposed, uncompiled

import gemmlab
from gemmlab import kernels
from gemmlab.core.errors import ArgumentTypeError, DeviceError, UsageError
from gemmlab.core.program import Artifact, Launch, Program
from gemmlab.devices import cuda, cuda_driver
from gemmlab.devices.cuda_driver import Driver
from gemmlab.devices.device import Window
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.dispatch import choice, cuda_again, cuda_calls, cuda_gemm
from gemmlab.toolchain.build_cuda import build

Float32Array = npt.NDArray[np.float32]
LEGACY = 1
RNG = np.random.default_rng(5)


def uniform(*shape: int) -> Float32Array:
    return RNG.random(shape, dtype=np.float32) - np.float32(0.5)


A, B, C = uniform(12, 20), uniform(20, 8), uniform(12, 8)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[GemmDriver]:
    fake = GemmDriver()
    for module in (cuda, cuda_driver, cuda_calls):
        monkeypatch.setattr(module, "open_driver", lambda: Driver(fake))
    monkeypatch.setattr(cuda, "build", uncompiled)
    monkeypatch.setattr(cuda_gemm, "_gemms", {})
    monkeypatch.setattr(cuda_again, "_known", {})
    monkeypatch.setattr(cuda_again, "_packages", {})
    yield fake
    cuda_gemm._gemms.clear()


def values(result: Any) -> Float32Array:
    if isinstance(result, OnGpu):
        return result.values
    shown = result.__cuda_array_interface__
    shape = shown["shape"]
    return rows(shown["data"][0], 1, int(np.prod(shape)), 1).reshape(shape)


def close(found: Any, expected: Any) -> None:
    assert values(found).shape == expected.shape
    np.testing.assert_allclose(values(found), expected, rtol=1e-4, atol=1e-5)


def test_one_launch_on_the_arrays_own_stream(driver: GemmDriver) -> None:
    found = gemmlab.gemm(OnGpu(A, 77), OnGpu(B, 77))
    close(found, A @ B)
    assert found.__cuda_array_interface__["stream"] == 77
    (launch,) = driver.launches
    assert launch[-1] == 77
    assert not driver.events


def forms(x: Float32Array) -> dict[str, Float32Array]:
    """The same matrix as it may lie in memory."""
    m, n = x.shape
    wide, tall = np.full((m, n + 4), np.nan, np.float32), np.full((n, m + 3), np.nan, np.float32)
    wide[:, 2 : n + 2], tall[:, 1 : m + 1] = x, x.T
    return {
        "rows": x.copy(),
        "columns": np.asfortranarray(x),
        "part of rows": wide[:, 2 : n + 2],
        "of columns": tall[:, 1:-2].T,
    }


@pytest.mark.parametrize("of_a", forms(A))
@pytest.mark.parametrize("of_b", forms(B))
@pytest.mark.parametrize("of_out", forms(C))
def test_every_layout_is_read_and_written_in_place(driver: GemmDriver, of_a: str, of_b: str, of_out: str) -> None:
    """No package is known here that could copy, and outputs keep what lies between their rows."""
    out = forms(C)[of_out]
    around = None if out.base is None else out.base.copy()
    result = gemmlab.gemm(OnGpu(forms(A)[of_a]), OnGpu(forms(B)[of_b]), alpha=0.5, beta=2, c=(o := OnGpu(out)), out=o)
    assert result is o
    close(o, 0.5 * A @ B + 2 * C)
    assert len(driver.launches) == 1
    if around is not None and np.isnan(around).any():
        assert np.isnan(np.asarray(out.base)[np.isnan(around)]).all()


def test_transposed_operands_go_to_kernels_that_read_them(driver: GemmDriver) -> None:
    close(gemmlab.gemm(OnGpu(A), OnGpu(C), trans_a=True), A.T @ C)
    close(gemmlab.gemm(OnGpu(A.T), OnGpu(C)), A.T @ C)
    close(gemmlab.gemm(OnGpu(A), OnGpu(B.T), trans_b=True), A @ B)
    assert [transposed(launch[0]) for launch in driver.launches] == [(True, False), (True, False), (False, False)]


def test_a_column_major_result_is_the_product_the_other_way_round(driver: GemmDriver) -> None:
    out = OnGpu(np.empty((8, 12), np.float32).T)
    close(gemmlab.gemm(OnGpu(A.T.copy().T), OnGpu(B.T.copy().T), out=out), A @ B)
    # (C^T) = (B^T) (A^T), all of them row-major.
    assert transposed(driver.launches[0][0]) == (False, False)


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 5, 7), (3, 7, 2)), ((5, 7), (4, 7, 2)), ((2, 1, 5, 7), (3, 7, 2)), ((7,), (7,)), ((5, 7), (7,)),
        ((7,), (7, 5)), ((3, 5, 7), (7,)), ((7,), (3, 7, 5)), ((0, 7), (7, 5)), ((5, 0), (0, 6)), ((5, 7), (7, 0)),
        ((0, 5, 7), (7, 2)), ((1, 7), (7, 1)),
    ],
)  # fmt: skip
def test_shapes_are_those_of_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = uniform(*a), uniform(*b)
    close(gemmlab.gemm(OnGpu(left), OnGpu(right)), np.asarray(left @ right))


def test_c_is_put_into_a_fresh_result_first(driver: GemmDriver) -> None:
    close(gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), beta=3, c=OnGpu(C, 7)), A @ B + 3 * C)
    assert driver.events == [("cuMemcpyDtoDAsync", 7)]
    # With beta 0 it is not read.
    close(gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 7), c=OnGpu(np.full_like(C, np.nan), 7)), A @ B)
    assert len(driver.events) == 1


def test_alpha_0_reads_neither(driver: GemmDriver) -> None:
    nothing = np.full_like(A, np.nan)
    close(gemmlab.gemm(OnGpu(nothing), OnGpu(B), alpha=0, beta=2, c=OnGpu(C)), 2 * C)
    assert len(driver.launches) == 1


def test_tensors_in_a_tensor_out_on_torch_s_stream(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    play_torch(monkeypatch, 99)
    found = gemmlab.gemm(Tensor(A), Tensor(B), beta=2, c=Tensor(C[:1]))
    assert isinstance(found, Tensor)
    close(found, A @ B + 2 * C[:1])
    # What kernels cannot read is copied by torch; beside a plain array the tensor decides.
    close(gemmlab.gemm(Tensor(np.repeat(A, 2, 1)[:, ::2]), OnGpu(B)), A @ B)
    assert isinstance(gemmlab.gemm(OnGpu(A), Tensor(B)), Tensor)
    assert {launch[-1] for launch in driver.launches} == {99}


def test_cupy_arrays_in_and_out(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    play_cupy(monkeypatch, 0)
    found = gemmlab.gemm(Array(A), Array(np.broadcast_to(B[:, :1], B.shape)), beta=1, c=Array(C))
    assert isinstance(found, Array)
    close(found, A @ np.broadcast_to(B[:, :1], B.shape) + C)
    assert driver.launches[0][-1] == LEGACY


def test_the_result_s_stream_waits_for_those_of_operands(driver: GemmDriver) -> None:
    gemmlab.gemm(OnGpu(A, 7), OnGpu(B, 8))
    assert driver.events == [("cuEventRecord", 8), ("cuStreamWaitEvent", 7)]
    driver.events.clear()
    gemmlab.gemm(OnGpu(A, 7), OnGpu(B, None), out=OnGpu(np.empty_like(C), 9))
    assert driver.events == [("cuEventRecord", 7), ("cuStreamWaitEvent", 9)]


def test_the_caller_s_context_is_current_again(driver: GemmDriver) -> None:
    driver.contexts.append("another GPU's")
    gemmlab.gemm(OnGpu(A), OnGpu(B))
    assert "context of 1" in driver.contexts
    assert driver.contexts[-1] == "another GPU's"


def test_a_shape_is_chosen_and_loaded_once(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    real, chosen = choice.choose, list[Any]()

    def choose(*arguments: Any, **options: Any) -> Any:
        chosen.append(arguments)
        return real(*arguments, **options)

    monkeypatch.setattr(cuda_gemm, "choose", choose)
    for alpha in (1.0, 2.0):
        close(gemmlab.gemm(OnGpu(A), OnGpu(B), alpha=alpha), alpha * A @ B)
    assert len(chosen) == 1
    assert driver.modules == 1


def test_the_same_call_again_is_not_looked_at_but_all_that_differs_is(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    play_torch(monkeypatch, 99)
    driver.contexts.append("context of 1")
    x, y = Tensor(A), Tensor(B)
    close(gemmlab.gemm(x, y), A @ B)
    monkeypatch.setattr(cuda_calls, "request", lambda *_: pytest.fail("looked at"))
    for alpha in (1.0, 0.5):
        again = gemmlab.gemm(Tensor(A.copy()), y, alpha=alpha)
        assert isinstance(again, Tensor)
        close(again, alpha * A @ B)
    assert [launch[-1] for launch in driver.launches] == [99] * 3


def test_what_differs_is_looked_at(driver: GemmDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    play_torch(monkeypatch, 99)
    driver.contexts.append("context of 1")
    x, y = Tensor(A), Tensor(B)
    square = Tensor(uniform(20, 20))
    for _ in range(2):
        close(gemmlab.gemm(x, y), A @ B)
        close(gemmlab.gemm(x, square), A @ square.values)
        close(gemmlab.gemm(x, square, trans_b=True), A @ square.values.T)
        close(gemmlab.gemm(x, Tensor(square.values.T)), A @ square.values.T)
        close(gemmlab.gemm(x, y, beta=2, c=Tensor(C)), A @ B + 2 * C)
        close(gemmlab.gemm(x, y, alpha=np.float32(2)), 2 * A @ B)
        close(gemmlab.gemm(x, y, out=(out := Tensor(np.empty_like(C)))), A @ B)
        assert values(out).any()
        close(gemmlab.gemm(Tensor(np.stack([A, A])), y), np.stack([A @ B, A @ B]))
        close(gemmlab.gemm(x, y, kernel="naive"), A @ B)
        assert driver.launches[-1][0].startswith("naive<")
        close(gemmlab.gemm(x, y, kernel="naive", config={"BM": 8}), A @ B)
        assert driver.launches[-1][0] == "naive<8, 32>"
        with pytest.raises(ArgumentTypeError, match="dtype float64"):
            gemmlab.gemm(x, Tensor(B.astype(np.float64)))
        with pytest.raises(UsageError, match="there is no c"):
            gemmlab.gemm(x, y, beta=1.0)
        with pytest.raises(UsageError, match="threads"):
            gemmlab.gemm(x, y, threads=1)
    # Another context: it is looked at again, and is the caller's afterwards.
    driver.contexts.append("another GPU's")
    close(gemmlab.gemm(x, y), A @ B)
    assert driver.contexts[-1] == "another GPU's"


@pytest.mark.usefixtures("driver")
def test_an_array_that_does_not_show_its_memory_says_why() -> None:
    class Requiring(OnGpu):
        @property
        def __cuda_array_interface__(self) -> dict[str, Any]:
            raise RuntimeError("requires grad")

    said = "does not show its memory: requires grad"
    for a, b in ((Requiring(A), OnGpu(B)), (OnGpu(A), Requiring(B))):
        with pytest.raises(ArgumentTypeError, match=said):
            gemmlab.gemm(a, b)
    with pytest.raises(ArgumentTypeError, match=said):
        gemmlab.sum(Requiring(A))


def test_kernel_and_config_force(driver: GemmDriver) -> None:
    close(gemmlab.gemm(OnGpu(A), OnGpu(B), kernel="naive", config={"BM": 16}), A @ B)
    assert driver.launches[-1][0] == "naive<16, 32>"
    close(gemmlab.gemm(OnGpu(A), OnGpu(B), kernel="async_copy", config={"STAGES": 2}), A @ B)
    assert driver.launches[-1][0].startswith("async_copy<128, 256, 8, 16, 8, 2,")
    # Shared memory beyond the usual is asked for, as for any launch.
    close(gemmlab.gemm(OnGpu(A), OnGpu(B), kernel="async_copy", config={"STAGES": 4}), A @ B)
    assert driver.attributes[-1][1] == 4 * 4 * 8 * (128 + 256 + 8)


def test_a_file_of_one_s_own(driver: GemmDriver, tmp_path: Path) -> None:
    shipped = Path(kernels.__file__).parent / "gemm_cuda" / "naive.cu"
    close(gemmlab.gemm(OnGpu(A), OnGpu(B), kernel=str(shipped)), A @ B)
    assert driver.launches[-1][0] == "naive<32, 32>"
    picky = tmp_path / "picky.cu"
    text = shipped.read_text().replace("naive(", "picky(").replace('"BM >= 1"', '"BM >= 1", "beta == 0"')
    picky.write_text(re.sub(r"step = \d+\n|expect = \[.*?\n\]\n", "", text, flags=re.DOTALL))
    close(gemmlab.gemm(OnGpu(A), OnGpu(B), alpha=2, kernel=str(picky)), 2 * A @ B)
    with pytest.raises(UsageError, match=r"picky does not take .*beta == 0"):
        gemmlab.gemm(OnGpu(A), OnGpu(B), beta=1, c=OnGpu(C), kernel=str(picky))
    with pytest.raises(UsageError, match=r"nobody\.cu"):
        gemmlab.gemm(OnGpu(A), OnGpu(B), kernel="nobody.cu")


def test_tf32_runs_only_where_it_was_asked_for(driver: GemmDriver) -> None:
    big = OnGpu(np.zeros((512, 512), np.float32))
    gemmlab.gemm(big, big)
    gemmlab.gemm(big, big, precision="tf32")
    assert ["tf32" in launch[0] for launch in driver.launches] == [False, True]
    with pytest.raises(UsageError, match="mma_tf32_pipelined computes in tf32, and precision is 'highest'"):
        gemmlab.gemm(big, big, kernel="mma_tf32_pipelined")


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize(
    ("a", "b", "options", "error", "said"),
    [
        (A, B.astype(np.float64), {}, ArgumentTypeError, "b has dtype float64, not float32"),
        (np.ones((), np.float32), B, {}, UsageError, "a is a scalar"),
        (A, A, {}, UsageError, "do not fit: k is 20 on the left and 12 on the right"),
        (A, B[:, 0:0].reshape(20, 0)[..., None], {}, UsageError, "do not fit"),
        (A, B, {"threads": 2}, UsageError, "threads are this machine's"),
        (A, B, {"precision": "half"}, UsageError, "precision is 'half'"),
        (A, B, {"kernel": "nobody"}, UsageError, "no kernel named 'nobody'"),
        (A, B, {"kernel": "packed"}, UsageError, "packed runs on a CPU; the operands lie on a GPU"),
        (A, B, {"kernel": "reduce_peak"}, UsageError, "reduce_peak computes reduce"),
        (A, B, {"kernel": 7}, ArgumentTypeError, "kernel is 7"),
        (A, B, {"kernel": "naive", "config": {"QQ": 1}}, UsageError, "unknown parameter 'QQ'"),
        (A, B, {"kernel": "naive", "config": {"BM": 1000}}, UsageError, "constraints"),
        (A, B, {"config": {"BM": "x"}}, ArgumentTypeError, "BM in config is 'x'"),
        (A, B, {"config": [1]}, ArgumentTypeError, r"config is \[1\]"),
        (A, B.T.copy(), {"trans_b": True, "kernel": "naive"}, UsageError, "naive reads layouts nn; .* are nt"),
        (np.repeat(A, 2, 1)[:, ::2], B, {}, UsageError, "neither rows nor columns of a are neighbours"),
        (A, B, {"beta": 1.0}, UsageError, "there is no c"),
        (A, B, {"beta": 1.0, "c": OnGpu(uniform(5, 5))}, UsageError, "does not broadcast"),
        (A, B, {"beta": 1.0, "c": OnGpu(C[:1])}, UsageError, "must be contiguous and of the result's shape"),
        (A, B, {"out": OnGpu(C[1:])}, UsageError, r"out has shape \(11, 8\); the result has \(12, 8\)"),
        (A, B, {"out": OnGpu(uniform(24, 16)[::2, ::2])}, UsageError, "neither rows nor columns of out"),
        (A, B, {"out": C}, ArgumentTypeError, "out is numpy.ndarray, which lies on no GPU"),
        (A, B, {"alpha": "1"}, ArgumentTypeError, "alpha is '1'"),
    ],
)  # fmt: skip
def test_errors(a: Any, b: Any, options: dict[str, Any], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        gemmlab.gemm(OnGpu(a), OnGpu(b), **options)


@pytest.mark.usefixtures("driver")
def test_host_and_gpu_do_not_mix() -> None:
    for a, b, name in ((A, OnGpu(B), "a"), (OnGpu(A), B, "b")):
        with pytest.raises(ArgumentTypeError, match=f"{name} is numpy.ndarray, which lies on no GPU"):
            gemmlab.gemm(a, b)


@pytest.mark.usefixtures("driver")
def test_what_torch_negates_when_it_reads_is_refused() -> None:
    class Negated(Tensor):
        def is_neg(self) -> bool:
            return True

    with pytest.raises(ArgumentTypeError, match=r"x\.resolve_neg\(\) does it now"):
        gemmlab.gemm(Negated(A), OnGpu(B))


@pytest.mark.usefixtures("driver")
def test_an_out_that_overlaps_or_cannot_be_written() -> None:
    square = uniform(12, 12)
    with pytest.raises(UsageError, match="out shares memory with a"):
        gemmlab.gemm(OnGpu(square), OnGpu(uniform(12, 12)), out=OnGpu(square))
    room = uniform(13, 12)
    with pytest.raises(UsageError, match="out shares memory with c"):
        gemmlab.gemm(OnGpu(square), OnGpu(square), beta=1, c=OnGpu(room[1:]), out=OnGpu(room[:-1]))
    fixed = uniform(12, 8)
    fixed.flags.writeable = False
    with pytest.raises(TypeError, match=r"out is read-only, as a .*OnGpu on a GPU says"):
        gemmlab.gemm(OnGpu(A), OnGpu(B), out=OnGpu(fixed))
    with pytest.raises(UsageError, match="elements of out share memory"):
        gemmlab.gemm(OnGpu(A), OnGpu(B), out=OnGpu(np.lib.stride_tricks.as_strided(uniform(40), (12, 8), (4, 4))))


def test_operands_on_two_gpus(driver: GemmDriver) -> None:
    driver.placed[B.ctypes.data] = 0
    with pytest.raises(DeviceError, match="a lies on cuda:1, b lies on cuda:0; one GPU is needed"):
        gemmlab.gemm(OnGpu(A), OnGpu(B))


@pytest.mark.usefixtures("driver")
def test_explain_choice_of_arrays_says_what_would_run_there() -> None:
    found = gemmlab.explain_choice(OnGpu(A), OnGpu(B.T), trans_b=True)
    assert (found.basis, found.where, found.problem.split(",")[0]) == ("rule", "A GPU", "12x8x20 (nn)")
    assert found.kernel in {"block_tile", "double_buffer", "naive", "warp_tile"}
    assert gemmlab.explain_choice(OnGpu(A), OnGpu(B), kernel="naive").basis == "forced"


@needs_compiler
@pytest.mark.parametrize(("of_a", "of_b"), [("rows", "rows"), ("columns", "part of rows"), ("of columns", "columns")])
def test_machine_code_computes_what_the_launch_says(
    driver: GemmDriver, monkeypatch: pytest.MonkeyPatch, of_a: str, of_b: str
) -> None:
    """The emulator runs each launch as it reached the driver: arguments, grid, block, instance of the layout."""
    artifacts: dict[str, Artifact] = {}

    def kept(program: Program) -> Artifact:
        artifact = build(program)
        return artifacts.setdefault(artifact.entry, artifact)

    a, b, out = forms(A)[of_a], forms(B)[of_b], uniform(12, 8)
    expected = 0.5 * A @ B - 2 * out
    whole = {x.ctypes.data: x if x.base is None else x.base for x in (a, b, out)}
    emulated = EmulatedDevice("sm_90")

    def run(name: str, *arguments: Any) -> None:
        _, *extents, smem, _ = driver.launches[-1]
        buffers = {}
        values: list[Any] = []
        for argument in arguments:
            if argument in whole:
                base, before = whole[argument], argument - whole[argument].ctypes.data
                buffers[argument] = emulated.upload(base.ravel("K"))
                values.append(Window(buffers[argument], before, base.nbytes - before))
            else:
                values.append(np.float32(argument) if isinstance(argument, float) else np.int32(argument))
        launch = Launch(tuple(values), tuple(extents[:3]), tuple(extents[3:6]), smem)
        emulated.launch(emulated.load(artifacts[name]), launch)
        emulated.download(buffers[out.ctypes.data], out)

    monkeypatch.setattr(cuda, "build", kept)
    driver.multiply = run
    gemmlab.gemm(OnGpu(a), OnGpu(b), alpha=0.5, beta=-2, c=(o := OnGpu(out)), out=o, kernel="vector_load")
    assert list(artifacts) == [launch[0] for launch in driver.launches]
    close(o, expected)
