"""`gemmlab.pack`: the bits of the plain call, and errors for every misuse."""

from __future__ import annotations

import pickle
from typing import Any, ClassVar

import numpy as np
import pytest

import gemmlab

SHAPES = [
    (1, 100, 70),
    (2, 33, 5),
    (16, 300, 900),
    (64, 97, 1500),
    (13, 1, 50),
    (5, 31, 64),
    (1, 1, 9),
    (70, 130, 2000),
]


OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {"alpha": 0.5, "beta": -2.0}, {"alpha": 0.0, "beta": 3.0}, {"reproducible": True}
)  # fmt: skip


def operands(m: int, n: int, k: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(11)
    return (
        rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32),
        rng.standard_normal((m, n), np.float32),
    )  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_bits_are_those_of_the_plain_call(shape: tuple[int, int, int], threads: int) -> None:
    a, b, c = operands(*shape)
    packed = gemmlab.pack(b)
    for chosen in OPTIONS:
        options = chosen | ({"c": c} if "beta" in chosen else {})
        plain = gemmlab.gemm(a, b, threads=threads, **options)
        assert gemmlab.gemm(a, packed, threads=threads, **options).tobytes() == plain.tobytes()
    turned = gemmlab.pack(np.ascontiguousarray(b.T), trans_b=True)
    assert gemmlab.gemm(a, turned).tobytes() == gemmlab.gemm(a, packed).tobytes()
    plain = gemmlab.gemm(np.ascontiguousarray(a.T), b, trans_a=True)
    assert gemmlab.gemm(np.ascontiguousarray(a.T), packed, trans_a=True).tobytes() == plain.tobytes()


def test_out_stacks_rows_and_columns() -> None:
    rng = np.random.default_rng(12)
    a, b = rng.standard_normal((3, 4, 20, 50), np.float32), rng.standard_normal((50, 70), np.float32)
    packed = gemmlab.pack(b)
    plain = gemmlab.gemm(a, b)
    assert gemmlab.gemm(a, packed).tobytes() == plain.tobytes()
    wide = np.full((3, 4, 20, 80), np.nan, np.float32)
    out = wide[..., 5:75]
    assert gemmlab.gemm(a, packed, out=out) is out
    np.testing.assert_array_equal(out, plain)
    assert np.isnan(wide[..., :5]).all()
    assert np.isnan(wide[..., 75:]).all()
    turned = np.empty((70, 20), np.float32).T
    gemmlab.gemm(a[0, 0], packed, out=turned)
    np.testing.assert_array_equal(turned, plain[0, 0])
    row = gemmlab.gemm(a[0, 0, 0], packed)
    assert row.shape == (70,)
    assert row.tobytes() == gemmlab.gemm(a[0, 0, 0], b).tobytes()
    assert gemmlab.gemm(np.zeros((0, 50), np.float32), packed).shape == (0, 70)
    empty = gemmlab.pack(np.zeros((50, 0), np.float32))
    assert gemmlab.gemm(a[0, 0], empty).shape == (20, 0)


def test_it_is_a_copy_that_shows_its_shape() -> None:
    a, b, _ = operands(8, 40, 30)
    packed, before = gemmlab.pack(b), gemmlab.gemm(a, b)
    b[...] = np.nan
    assert gemmlab.gemm(a, packed).tobytes() == before.tobytes()
    assert (packed.shape, packed.ndim) == ((30, 40), 2)
    assert packed.dtype == np.float32
    assert repr(packed) == f"<gemmlab.pack of 30 x 40 float32, {packed.nbytes:,} bytes>"
    with pytest.raises(AttributeError):
        packed.shape = (1, 1)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        packed.strips[...] = 0


def test_special_values_and_precisions() -> None:
    a, b, _ = operands(20, 40, 30)
    a[3, 3], b[5, 7] = np.nan, np.inf
    packed = gemmlab.pack(b)
    for precision in ("highest", "float32", "tf32", "f16x3", "tf32x3"):
        np.testing.assert_array_equal(gemmlab.gemm(a, packed, precision=precision), gemmlab.gemm(a, b))


def test_misuse_is_refused_by_name() -> None:
    a, b, c = operands(20, 40, 30)
    packed, usage = gemmlab.pack(b), gemmlab.UsageError
    with pytest.raises(gemmlab.ArgumentTypeError, match="gemm: a is a packed operand; only b can be one"):
        gemmlab.gemm(packed, b)
    with pytest.raises(gemmlab.ArgumentTypeError, match="gemm: c is a packed operand"):
        gemmlab.gemm(a, packed, beta=1.0, c=packed)
    with pytest.raises(usage, match=r"op\(a\) of shape \(40, 20\) and op\(b\) of shape \(30, 40\) do not fit"):
        gemmlab.gemm(c.T, packed)
    with pytest.raises(usage, match=r"pack\(b, trans_b=True\) packs its transpose"):
        gemmlab.gemm(a, packed, trans_b=True)
    with pytest.raises(usage, match="packed for the default kernel"):
        gemmlab.gemm(a, packed, kernel="threaded")
    with pytest.raises(usage, match="b is packed in float32, and precision is 'bf16x6'"):
        gemmlab.gemm(a, packed, precision="bf16x6")
    with pytest.raises(usage, match="pickle the matrix, and pack it again"):
        pickle.dumps(packed)
    with pytest.raises(usage, match="a packed operand is no array"):
        np.asarray(packed)
    with pytest.raises(usage, match="pack: b is packed already"):
        gemmlab.pack(packed)
    with pytest.raises(usage, match=r"pack: b has shape \(3,\); it must have two axes"):
        gemmlab.pack(np.ones(3, np.float32))
    with pytest.raises(gemmlab.ArgumentTypeError, match="pack: b"):
        gemmlab.pack(np.ones((3, 3)))
    with pytest.raises(gemmlab.ArgumentTypeError, match="pack: trans_b is 'yes'; it must be True or False"):
        gemmlab.pack(b, trans_b="yes")  # type: ignore[arg-type]
    with pytest.raises(gemmlab.ArgumentTypeError, match="gemm: c is a packed operand; only b can be one"):
        gemmlab.gemm(a, b, beta=1.0, c=packed)
    for function in (gemmlab.explain_choice, gemmlab.workspace_bytes):
        with pytest.raises(gemmlab.ArgumentTypeError, match="gemm: b is a packed operand; pass its shape"):
            function(a, packed)


def test_products_of_a_group_take_packed_operands() -> None:
    a, b, _ = operands(20, 40, 30)
    packed, plain = gemmlab.pack(b), gemmlab.gemm(a, b)
    out = [np.empty_like(plain) for _ in range(2)]
    for results in (gemmlab.gemm_group([a, a], [packed, b]), gemmlab.gemm_group([a, a], [b, packed], out=out)):
        assert all(result.tobytes() == plain.tobytes() for result in results)
    with pytest.raises(gemmlab.ArgumentTypeError, match="gemm_group: product 1: a is a packed operand; only b can be"):
        gemmlab.gemm_group([a, packed], [b, b])
    with pytest.raises(gemmlab.UsageError, match="gemm_group: product 0: trans_b does not apply to a packed b"):
        gemmlab.gemm_group([a], [packed], trans_b=True)


def test_a_group_takes_tensors_with_packed_operands() -> None:
    torch = pytest.importorskip("torch")
    a, b, _ = operands(20, 40, 30)
    (tensor,) = gemmlab.gemm_group([torch.from_numpy(a)], [gemmlab.pack(b)])
    assert tensor.numpy().tobytes() == gemmlab.gemm(a, b).tobytes()


def test_arrays_on_a_gpu_are_refused() -> None:
    class OnGpu:
        __cuda_array_interface__: ClassVar[dict[str, Any]] = {
            "shape": (4, 3),
            "typestr": "<f4",
            "data": (4096, False),
            "version": 3,
        }

    with pytest.raises(gemmlab.UsageError, match="pack: b lies on a GPU"):
        gemmlab.pack(OnGpu())
    with pytest.raises(gemmlab.UsageError, match="b was packed on the CPU; a, c and out must lie there, too"):
        gemmlab.gemm(OnGpu(), gemmlab.pack(np.ones((3, 2), np.float32)))
    with pytest.raises(
        gemmlab.UsageError, match="product 0: b was packed on the CPU; a, c and out must lie there, too"
    ):
        gemmlab.gemm_group([OnGpu()], [gemmlab.pack(np.ones((3, 2), np.float32))])
