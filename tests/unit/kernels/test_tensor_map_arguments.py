"""Kernels whose operands come through tensor maps: how a file states them, and what a launch is given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from gemmlab.core.errors import UsageError
from gemmlab.core.tensor_map import decode
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.kernels.bound import place
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.cuda_kernel import shipped_kernel
from gemmlab.kernels.instances import instance_for
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from support.cuda_source import needs_compiler

OP = GemmOp()
SOURCE = """/* gemmlab
summary = "a map"
idea = "none"
source = "a test"
op = "gemm"
arch = "sm_90a"
transposes = ["nn", "tn"]
grid = "ceil_div(M, BM) * ceil_div(N, 32)"
threads = 32
params = { BM = 16 }

[maps]
A = { box = "8 if TRANS_A else BM, BM if TRANS_A else 8" }
B = { type = "float32", box = "8, 32", swizzle = 128, promotion = 256 }
*/
template <int BM, bool TRANS_A>
__global__ void mine(int M, int N, int K, const __grid_constant__ CUtensorMap A_map,
                     const __grid_constant__ CUtensorMap tmapB, float* C, int ldc)
{
}
"""
TABLE = SOURCE[SOURCE.index("[maps]") : SOURCE.index("*/")]


def kernel(folder: Path, text: str = SOURCE) -> Kernel:
    path = folder / "gemm_cuda" / "mine.cu"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return shipped_kernel(path)


def test_maps_are_told_by_the_names_of_arguments(tmp_path: Path) -> None:
    found = kernel(tmp_path)
    assert found.args == ("m", "n", "k", "tensor_map(a)", "tensor_map(b)", "c", "ldc")
    assert found.align == 16
    in_order = 'args = "M, N, K, tensor_map(B), tensor_map(A), C, ldc"\n[maps]'
    assert kernel(tmp_path, SOURCE.replace("[maps]", in_order)).args[3:5] == ("tensor_map(b)", "tensor_map(a)")


@pytest.mark.parametrize("layout", ["nn", "tn"])
def test_a_map_is_of_the_problem_and_the_configuration(tmp_path: Path, layout: str) -> None:
    found, turned = kernel(tmp_path), layout[0] == "t"
    problem = GemmProblem(40, 70, 24, trans_a=turned, lda=44, ldb=72)
    instance = instance_for(found, {"BM": 32}, OP.scalars(problem))
    (launch,) = instance.launches
    a, b = (decode(launch.args[at].tobytes()) for at in (3, 4))
    assert (a.type.name, b.type.name, a.swizzle, b.swizzle, b.promotion) == ("FLOAT32", "FLOAT32", 0, 128, 256)
    assert (a.shape, b.shape) == ((40, 24) if turned else (24, 40), (70, 24))
    assert (a.strides, b.strides) == ((176,), (288,))
    assert (a.box, b.box) == ((32, 8) if turned else (8, 32), (32, 8))
    assert a.address == b.address == 0


def test_four_classes_of_rows_have_a_map_each(tmp_path: Path) -> None:
    text = SOURCE.replace("CUtensorMap A_map", "FourMaps A_map").replace('8" }\nB', '8", classes = 4 }\nB')
    found = kernel(tmp_path, text)
    assert "lda" not in " ".join(restriction.that.text for restriction in found.restrictions)
    instance = instance_for(found, {"BM": 16}, OP.scalars(GemmProblem(6, 8, 5, lda=7)))
    maps = instance.launches[0].args[3].tobytes()
    found_maps = [decode(maps[at : at + 128]) for at in range(0, len(maps), 128)]
    # Row r begins at 28 r bytes: 0, 28 = 16 + 3 words, 56 = 48 + 2 words, 84 = 80 + 1 word.
    assert [one.address for one in found_maps] == [0, 16, 48, 80]
    assert [one.shape for one in found_maps] == [(5, 2), (8, 2), (7, 1), (6, 1)]
    assert {one.strides for one in found_maps} == {(112,)}


def test_the_addresses_of_further_maps_follow_that_of_the_operand(tmp_path: Path) -> None:
    text = SOURCE.replace("CUtensorMap A_map", "FourMaps A_map").replace('8" }\nB', '8", classes = 4 }\nB')
    instance = instance_for(kernel(tmp_path, text), {"BM": 16}, OP.scalars(GemmProblem(6, 8, 5, lda=7)))
    assert instance.words("a", "b", "c") == (3, 3 + 64, 3 + 80)
    assert instance.further_words("c", "a", "b") == ((1, 19, 16), (1, 35, 48), (1, 51, 80))
    alone = instance_for(kernel(tmp_path), {"BM": 16}, OP.scalars(GemmProblem(8, 8, 8)))
    assert alone.further_words("a", "b", "c") == ()


def test_a_class_without_rows_has_a_map_inside_the_operand(tmp_path: Path) -> None:
    text = SOURCE.replace("CUtensorMap A_map", "FourMaps A_map").replace('8" }\nB', '8", classes = 4 }\nB')
    instance = instance_for(kernel(tmp_path, text), {"BM": 16}, OP.scalars(GemmProblem(2, 8, 5, lda=7)))
    maps = instance.launches[0].args[3].tobytes()
    assert [decode(maps[at : at + 128]).address for at in range(0, len(maps), 128)] == [0, 16, 0, 0]


@pytest.mark.parametrize(
    ("kind", "classes", "words"),
    [
        ("CUtensorMap", 4, "classes = 4, so .* must be a FourMaps"),
        ("FourMaps", 1, "classes = 1, so .* must be a CUtensorMap"),
    ],
)
def test_the_type_of_an_argument_has_as_many_maps_as_are_stated(
    tmp_path: Path, kind: str, classes: int, words: str
) -> None:
    text = SOURCE.replace("CUtensorMap A_map", f"{kind} A_map").replace('8" }\nB', f'8", classes = {classes} }}\nB')
    with pytest.raises(UsageError, match=words):
        kernel(tmp_path, text)


def test_other_numbers_of_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="A: classes is 2; there are 1, 4"):
        kernel(tmp_path, SOURCE.replace('8" }\nB', '8", classes = 2 }\nB'))


def test_words_are_counted_in_eight_bytes(tmp_path: Path) -> None:
    instance = instance_for(kernel(tmp_path), {"BM": 16}, OP.scalars(GemmProblem(8, 8, 8)))
    assert instance.words("a", "b", "c", "nothing", "m") == (3, 3 + 16, 3 + 32, 0)
    naive = find_kernel("naive")
    plain = instance_for(naive, naive.params, OP.scalars(GemmProblem(8, 8, 8)))
    assert plain.words("a", "b", "c") == plain.places("a", "b", "c")


def test_empty_operands_have_a_map(tmp_path: Path) -> None:
    """k = 0: a map has at least one element, and the kernel copies none."""
    instance = instance_for(kernel(tmp_path), {"BM": 16}, OP.scalars(GemmProblem(8, 8, 0, lda=4)))
    assert decode(instance.launches[0].args[3].tobytes()).shape == (1, 8)


def test_rows_off_16_bytes_are_refused_of_operands_with_a_map_alone(tmp_path: Path) -> None:
    found = kernel(tmp_path)
    refused = "lda * 4 % 16 == 0 (rows of a tensor map are aligned to 16 bytes)"
    assert refused in found.refusals(found.params, OP.scalars(GemmProblem(8, 8, 6)))
    assert found.refusals(found.params, OP.scalars(GemmProblem(8, 8, 8, ldc=9, lda=12))) == []


def test_a_base_off_16_bytes_is_refused_with_the_kernel_s_name(tmp_path: Path) -> None:
    found, scalars = kernel(tmp_path), OP.scalars(GemmProblem(8, 8, 8))
    operands = dict.fromkeys(("tensor_map(a)", "tensor_map(b)", "c"), np.uint64(64))
    assert found.launches({"BM": 16, "TRANS_A": 0}, {**scalars, **operands})
    with pytest.raises(UsageError, match=r"mine: tensor map: address 0x44 is no multiple of 16 \(B is FLOAT32 8 x 8"):
        found.launches({"BM": 16, "TRANS_A": 0}, {**scalars, **operands, "tensor_map(b)": np.uint64(68)})


def wrong() -> Iterator[tuple[str, str]]:
    a = 'A = { box = "8 if TRANS_A else BM, BM if TRANS_A else 8" }'
    yield "maps = 3", "maps: 3 is not a table"
    for line, said in (
        ('D = { box = "8, 8" }', "maps: D is none of A, B, C"),
        ("A = 3", "maps: A = 3 is not a table with box"),
        ('A = { box = "8" }', "A: box is '8', not rows and columns"),
        ('A = { box = "8, Q" }', "A: expression 'Q': no value named 'Q'"),
        ('A = { box = "8, 8", type = "bfloat16" }', "A: type is 'bfloat16'; there are float32, float32_ftz, tfloat32"),
        ('A = { box = "8, 8", swizzle = 3 }', "A: swizzle is 3; there are 0, 32, 64, 128"),
        ('A = { box = "8, 8", swizle = 32 }', "A has 'swizle'; a map has box, type, swizzle, promotion"),
        ('A = { box = "8, 64", swizzle = 128 }', "A, layout nn: tensor map: the box's rows have 256 bytes"),
        ('A = { box = "8, 3" }', "no multiple of 16 bytes: 3 elements of FLOAT32 are 12 bytes"),
        ('A = { box = "512, 8" }', "the box has 512 elements in dimension 1"),
        ("", "maps: no box of tensor_map(a)"),
        (a + '\nC = { box = "8, 8" }', "maps: no argument is tensor_map(c)"),
    ):  # fmt: skip
        yield TABLE.replace(a, line), said


@pytest.mark.parametrize(("table", "said"), list(wrong()))
def test_what_is_wrong_is_named_with_file_and_key(tmp_path: Path, table: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        kernel(tmp_path, SOURCE.replace(TABLE, table + "\n"))
    assert str(caught.value).startswith("gemm_cuda/mine.cu")
    assert said in str(caught.value)


def test_a_map_is_no_pointer(tmp_path: Path) -> None:
    for args in ("A, tensor_map(B), C, ldc", "tensor_map(A), tensor_map(B), tensor_map(C), ldc"):
        with pytest.raises(UsageError, match="cannot be"):
            kernel(tmp_path, SOURCE.replace("[maps]", f'args = "M, N, K, {args}"\n[maps]'))
    with pytest.raises(UsageError, match="'CUtensorMap other' is none of them"):
        kernel(tmp_path, SOURCE.replace("tmapB", "other"))


@pytest.mark.in_turns(20)
@needs_compiler
def test_memory_bound_anew_is_in_the_map() -> None:
    device, persistent = EmulatedDevice("sm_90a"), find_kernel("persistent")
    problem = GemmProblem(16, 16, 32)
    placed = place(persistent, device, {"BY": 64, "BLOCKS": 1})
    for seed in (1, 2):
        arrays = OP.fill(problem, np.random.default_rng(seed))
        flat = {name: np.ascontiguousarray(values).reshape(-1) for name, values in arrays.items()}
        bound = placed.bind(OP, problem, {name: device.upload(values) for name, values in flat.items()})
        bound.run()
        out = np.empty(256, np.float32)
        bound.download("c", out)
        np.testing.assert_allclose(
            out.reshape(16, 16), flat["a"].reshape(16, 32) @ flat["b"].reshape(32, 16), rtol=0.02, atol=0.02
        )
