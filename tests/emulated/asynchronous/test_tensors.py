"""Tensor copies on the emulator against a reference that moves one element at a time."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("cuda.bindings.nvrtc", reason="no CUDA compiler here")

from async_runs import DEVICE, HERE, outputs, ran

from gemmlab import TensorMap, launch
from gemmlab.core.errors import UsageError
from gemmlab.launching.source import CudaText
from gemmlab.toolchain.build_cuda import build
from tensor_map_probe import boxes

SOURCE = HERE / "tensors.cu"
RECORD = HERE.parents[2] / "benchmarks/results/h200/tensor_maps.json"
Array = npt.NDArray[Any]
RNG = np.random.default_rng(8)
ROOM = 40 * 1024


def numbers(shape: tuple[int, ...], dtype: type[np.generic]) -> Array:
    """Random values whose bits are all different enough to show a wrong place."""
    return RNG.integers(0, 200, shape).astype(dtype)


def swizzled(at: int, swizzle: int) -> int:
    """The place of a byte of a box that begins at a multiple of 1024."""
    rows = {0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
    return at ^ (at >> 7 & rows) << 4


def expected(tensor: TensorMap, corner: tuple[int, ...], steps: tuple[int, ...]) -> bytes:
    """The box in shared memory: `corner` in the order of the array's axes."""
    array = tensor.array
    extents = [-(-box // step) for box, step in zip(tensor.box, steps, strict=True)]
    size = array.itemsize
    out = bytearray(int(np.prod(extents)) * size)
    for number, place in enumerate(product(*map(range, extents))):
        at = tuple(c + p * s for c, p, s in zip(corner, place, steps, strict=True))
        inside = all(0 <= a < n for a, n in zip(at, array.shape, strict=True))
        value = array[at].tobytes() if inside else bytes(size)
        for byte in range(size):
            out[swizzled(number * size + byte, tensor.swizzle)] = value[byte]
    return bytes(out)


def moved(kernel: str, *args: Any) -> list[Array]:
    """The arrays after a kernel that moves one box."""
    arrays: list[Array] = ran("tensors.cu", kernel, 64, *args, smem_bytes=ROOM)
    return arrays


CASES = [
    (1, (100,), (32,), np.float32, 0, (0,)),
    (1, (100,), (256,), np.uint8, 0, (-16,)),
    (2, (40, 64), (8, 16), np.float32, 64, (3, 16)),
    (2, (40, 64), (16, 32), np.float32, 128, (33, 40)),
    (2, (40, 64), (16, 8), np.float32, 32, (-3, -4)),
    (2, (40, 64), (64, 64), np.float16, 128, (-5, 8)),
    (2, (40, 64), (8, 128), np.uint8, 128, (32, 0)),
    (2, (9, 8), (4, 2), np.float64, 0, (6, 6)),
    (2, (9, 8), (4, 8), np.int32, 32, (100, 100)),
    (3, (5, 12, 16), (2, 4, 16), np.uint16, 32, (4, 10, 0)),
    (3, (5, 12, 16), (3, 5, 8), np.int32, 0, (-1, -2, 4)),
    (4, (3, 4, 5, 8), (2, 2, 3, 8), np.uint32, 0, (1, 3, 4, -4)),
    (5, (2, 3, 4, 5, 8), (2, 2, 2, 2, 4), np.uint32, 0, (1, 2, -1, 4, 4)),
    (5, (2, 3, 4, 5, 16), (1, 2, 2, 2, 8), np.uint64, 64, (0, 1, 1, 1, 0)),
]


@pytest.mark.in_turns(20)
@pytest.mark.parametrize(("rank", "shape", "box", "dtype", "swizzle", "corner"), CASES)
@pytest.mark.sampled(14)
def test_a_loaded_box(
    rank: int, shape: tuple[int, ...], box: tuple[int, ...], dtype: type[np.generic], swizzle: int,
    corner: tuple[int, ...],
) -> None:  # fmt: skip
    tensor = TensorMap(numbers(shape, dtype), box, swizzle=swizzle)
    want = expected(tensor, corner, (1,) * rank)
    coordinates = [np.int32(value) for value in (*reversed(corner), 0, 0, 0, 0)][:5]
    out = moved(f"show{rank}", tensor, np.zeros(len(want), np.uint8), *coordinates, np.int32(len(want)))[1]
    assert out.tobytes() == want


@pytest.mark.in_turns(20)
def test_element_strides() -> None:
    tensor = TensorMap(numbers((30, 24, 16), np.float32), (9, 7, 16), element_strides=(4, 3, 1))
    want = expected(tensor, (5, 10, 0), (4, 3, 1))
    args = [np.int32(value) for value in (0, 10, 5, 0, 0, len(want))]
    assert moved("show3", tensor, np.zeros(len(want), np.uint8), *args)[1].tobytes() == want


@pytest.mark.in_turns(20)
def test_a_tensor_inside_a_padded_array() -> None:
    array = numbers((10, 16), np.float32)
    tensor = TensorMap(array, (4, 8), shape=(7, 10))
    out = moved("show2", tensor, np.zeros(128, np.uint8), *map(np.int32, (8, 5, 0, 0, 0, 128)))[1]
    want = np.zeros((4, 8), np.float32)
    want[:2, :2] = array[5:7, 8:10]
    assert out.tobytes() == want.tobytes()


def test_a_tensor_of_column_groups() -> None:
    array = numbers((40, 64), np.float32)
    tensor = TensorMap(array, (2, 5, 16), shape=(4, 40, 16), strides=(16, 64, 1))
    out = moved("show3", tensor, np.zeros(640, np.uint8), *map(np.int32, (0, 3, 1, 0, 0, 640)))[1]
    want = array.reshape(40, 4, 16).transpose(1, 0, 2)[1:3, 3:8]
    assert out.tobytes() == want.tobytes()


@pytest.mark.parametrize(("strides", "words"), [
    ((16, 64), "there must be one an axis"),
    ((16, 64, 2), "the last 1"),
    ((64, 64, 1), "ends 144 elements behind the array of shape (40, 64)"),
])  # fmt: skip
def test_strides_that_leave_the_array_are_refused(strides: tuple[int, ...], words: str) -> None:
    tensor = TensorMap(np.zeros((40, 64), np.float32), (2, 5, 16), shape=(4, 40, 16), strides=strides)
    with pytest.raises(UsageError) as error:
        moved("show3", tensor, np.zeros(640, np.uint8), *map(np.int32, (0, 3, 1, 0, 0, 640)))
    assert words in str(error.value)


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.sampled(4)
def test_a_stored_box_leaves_the_rest_of_the_tensor(swizzle: int) -> None:
    width = (swizzle or 64) // 4
    array, box = numbers((20, 32), np.float32), numbers((9, width), np.float32)
    raw = np.zeros(box.nbytes + 1024, np.uint8)
    for at, byte in enumerate(box.tobytes()):
        raw[swizzled(at, swizzle)] = byte
    tensor = TensorMap(array, box.shape, swizzle=swizzle)
    x, y = 32 - width // 2, 15
    out = moved("put0", tensor, raw[: box.nbytes], np.int32(x), np.int32(y), np.int32(box.nbytes))[0]
    want = array.copy()
    want[15:, x:] = box[:5, : width // 2]
    assert np.array_equal(out, want)


@pytest.mark.in_turns(20)
@pytest.mark.parametrize("length", [32, 30])
def test_a_store_writes_whole_units_of_16_bytes_where_the_tensor_ends(length: int) -> None:
    array, given = numbers((length,), np.float32), np.arange(4096, dtype=np.uint32)
    tensor = TensorMap(array, (16,), shape=(29,))
    corner = [np.int32(value) for value in (20, 0, 0, 0, 0)]
    out = ran("box_bits.cu", "store1", 64, tensor, given, np.zeros(1, np.uint32), *corner, np.uint32(0))[0]
    assert np.array_equal(out[:20], array[:20])
    assert out.view(np.uint32)[20:].tolist() == list(range(length - 20))


@pytest.mark.parametrize(
    ("kernel", "dtype", "reduce"),
    [
        ("put1", np.float32, np.add),
        ("put1", np.float16, np.add),
        ("put1", np.uint64, np.add),
        ("put2", np.int32, np.minimum),
        ("put3", np.uint32, np.maximum),
        ("put4", np.uint64, np.bitwise_xor),
        ("put5", np.uint32, lambda old, new: np.where(old >= new, 0, old + 1)),
    ],
)
@pytest.mark.sampled(7)
def test_a_reduced_box(kernel: str, dtype: type[np.generic], reduce: Any) -> None:
    array, box = numbers((12, 16), dtype), numbers((4, 16), dtype)
    tensor = TensorMap(array, box.shape)
    raw = box.view(np.uint8).reshape(-1)
    out = moved(kernel, tensor, raw, np.int32(8), np.int32(5), np.int32(raw.size))[0]
    want = array.copy()
    want[5:9, 8:] = reduce(array[5:9, 8:], box[:, :8])
    assert np.array_equal(out, want)


def test_bfloat16_sums_round_to_nearest_even() -> None:
    old, new = (np.array([[1.0, 256.0, -3.5, 3e38] * 2], np.float32) for _ in range(2))
    new[0, :4] = 2**-8, 1.0, 3.5, 3e38
    raw = (new.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).reshape(-1)
    array = (old.view(np.uint32) >> 16).astype(np.uint16)
    out = moved("put1", TensorMap(array, (1, 8), dtype="bfloat16"), raw, *map(np.int32, (0, 0, 16)))[0]
    assert [hex(word) for word in out[0, :4]] == ["0x3f80", "0x4380", "0x0", "0x7f80"]


def refused(tensor: TensorMap) -> str:
    with pytest.raises(UsageError) as caught:
        launch(SOURCE, "show2", 1, 32, [tensor, np.zeros(16, np.uint8), *[np.int32(0)] * 6], device=DEVICE)
    return str(caught.value)


def test_what_the_driver_would_refuse_is_refused_in_words() -> None:
    array = numbers((8, 16), np.float32)
    assert "no multiple of 16 bytes: 3 elements of FLOAT32 are 12 bytes" in refused(TensorMap(array, (4, 3)))
    deep = TensorMap(numbers((3, 4, 16), np.float32), (2, 2, 5), interleave=16)
    assert "no multiple of 16 bytes: 5 elements of FLOAT32 are 20 bytes" in refused(deep)
    assert "swizzle 32 takes at most 32" in refused(TensorMap(array, (4, 16), swizzle=32))
    assert "257 elements in dimension 1 (0 is the innermost); 1 to 256" in refused(TensorMap(array, (257, 4)))
    assert "element stride 9" in refused(TensorMap(array, (4, 4), element_strides=(9, 1)))
    assert "stride of dimension 1 (0 is the innermost) is 12 bytes" in refused(
        TensorMap(numbers((8, 3), np.float32), (4, 4))
    )
    assert "NaN needs a floating-point type" in refused(TensorMap(numbers((8, 16), np.int32), (4, 4), fill="nan"))
    assert "the box has 262144 bytes; at most 232448" in refused(TensorMap(numbers((256, 256), np.float32), (256, 256)))


@pytest.mark.skipif(DEVICE.startswith("cuda"), reason="a GPU stops with an illegal instruction")
@pytest.mark.parametrize("kernel", ["show2", "put0"])
def test_a_first_coordinate_that_is_no_multiple_of_16_bytes_is_reported(kernel: str) -> None:
    tensor = TensorMap(numbers((8, 32), np.float32), (4, 16))
    numbers_ = [np.int32(value) for value in ((2, 0, 0, 0, 0, 256) if kernel == "show2" else (2, 0, 256))]
    done = launch(SOURCE, kernel, 1, 64, [tensor, np.zeros(256, np.uint8), *numbers_], device=DEVICE, smem_bytes=ROOM)
    assert [hazard.kind for hazard in done.hazards or ()] == ["misaligned"]
    assert "the first coordinate of a tensor copy is 2, 8 bytes" in (done.hazards or ())[0].message


@pytest.mark.in_turns(20)
def test_a_map_that_the_kernel_replaces() -> None:
    path = HERE / "replace.cu"
    program = CudaText(path.read_text(), str(path)).program("replaced", "sm_90a", ())
    given, other = np.zeros((4, 16), np.float32), np.arange(64, dtype=np.float32)
    made = np.zeros(16, np.uint64)
    args = TensorMap(given, (4, 4)), made, other, np.zeros(32, np.float32)
    done = launch(build(program).code, "replaced", 1, 32, args, device=DEVICE)
    assert not done.hazards, [hazard.explain() for hazard in done.hazards or ()]
    want = other.reshape(4, 16)[:, 4:12].copy()
    want[3] = 0
    assert np.array_equal(outputs(done)[3].reshape(4, 8), want)


@pytest.mark.skipif(not RECORD.exists(), reason="no record of a GPU's boxes: makers/tensor_map_probe.py on a GPU")
def test_recorded_boxes_of_a_gpu() -> None:
    recorded = {row["name"]: row for row in json.loads(RECORD.read_text())["boxes"]}
    wrong = []
    for name, tensor, at, nbytes in boxes():
        coordinates = [np.int32(value) for value in (*at, 0, 0, 0, 0, 0)][:5]
        out = moved(f"show{len(at)}", tensor, np.zeros(nbytes, np.uint8), *coordinates, np.int32(nbytes))[1]
        if out.tobytes().hex() != recorded[name].get("bytes"):
            wrong.append(name)
    assert not wrong
