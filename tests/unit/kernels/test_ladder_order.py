"""The order of a ladder: from what each rung comes after, or a message that names the files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.kernels.catalog import all_kernels, broken_kernels, find_kernel
from gemmlab.kernels.kernel import Kernel
from gemmlab.kernels.order import in_order


def rung(name: str, after: str | None, op: str = "gemm", device: str = "cuda", **more: Any) -> Kernel:
    path = Path(f"{op}_{device}") / f"{name}.cu"
    plain = replace(find_kernel("naive"), id=name, op=op, device=device, path=path, after=after, step=None)
    return replace(plain, branch=more.get("branch", False), aliases=more.get("aliases", ()))


def names(*kernels: Kernel) -> list[str]:
    return [kernel.id for kernel in in_order(kernels)]


def test_a_line_is_followed_from_the_rung_that_comes_after_none() -> None:
    found = in_order([rung("a", "c"), rung("b", ""), rung("c", "b"), rung("x", None)])
    assert [(kernel.id, kernel.step) for kernel in found] == [("b", 1), ("c", 2), ("a", 3), ("x", None)]


def test_branches_come_after_the_whole_line_highest_first_then_by_name() -> None:
    line = [rung("a", ""), rung("b", "a"), rung("c", "b")]
    high, two, one = (rung("d", "c", branch=True), rung("z", "a", branch=True), rung("y", "a", branch=True))
    goes_on, of_branch = rung("e", "z"), rung("f", "z", branch=True)
    other = rung("0", "", branch=True)
    assert names(high, two, one, goes_on, of_branch, *line, other) == ["a", "b", "c", "d", "y", "z", "e", "f", "0"]


def test_each_operation_and_device_has_a_ladder_of_its_own() -> None:
    found = in_order([rung("a", ""), rung("b", "", device="cpu"), rung("c", "", op="reduce"), rung("d", "a")])
    assert [(kernel.id, kernel.step) for kernel in found] == [("b", 1), ("a", 1), ("d", 2), ("c", 1)]


def test_a_rung_can_be_inserted() -> None:
    before = [rung("a", ""), rung("b", "a")]
    assert names(*before, rung("new", "a", branch=True)) == ["a", "b", "new"]
    assert names(rung("a", ""), rung("b", "new"), rung("new", "a")) == ["a", "new", "b"]


@pytest.mark.parametrize(
    ("kernels", "said"),
    [
        ([rung("a", ""), rung("a", "", device="cpu")], "two kernels named a: gemm_cuda/a.cu and gemm_cpu/a.cu"),
        ([rung("a", ""), rung("b", "")], "gemm_cuda/a.cu and gemm_cuda/b.cu both begin the ladder of"),
        ([rung("a", ""), rung("c", "a"), rung("b", "a")], "gemm_cuda/b.cu and gemm_cuda/c.cu both continue a; `branch"),
        ([rung("aaa", ""), rung("b", "aab")], "gemm_cuda/b.cu: after = 'aab' is no rung of gemm on cuda; did you mean"),
        ([rung("a", "", device="cpu"), rung("b", "a")], "gemm_cuda/b.cu: after = 'a' is no rung of gemm on cuda"),
        ([rung("a", None), rung("b", "a")], "gemm_cuda/b.cu: after = 'a' is no rung of gemm on cuda"),
        ([rung("a", ""), rung("b", "c"), rung("c", "b"), rung("d", "c", branch=True)],
         "the ladder of gemm on cuda runs in a circle: gemm_cuda/b.cu after c, gemm_cuda/c.cu after b"),
        ([rung("a", "a")], "runs in a circle: gemm_cuda/a.cu after a"),
        ([rung("a", "", branch=True)], "no rung begins the ladder of gemm on cuda: gemm_cuda/a.cu is a branch"),
        ([rung("a", None, branch=True)], "gemm_cuda/a.cu: a branch without `after`"),
        ([rung("a", ""), rung("b", "a", aliases=("a",))], "gemm_cuda/b.cu: alias 'a' is a name of a (gemm_cuda/a.cu)"),
        ([rung("a", "", aliases=("o",)), rung("b", "a", aliases=("o",))],
         "gemm_cuda/b.cu: alias 'o' is a name of a (gemm_cuda/a.cu)"),
        ([rung("a", "", aliases=("a",))], "gemm_cuda/a.cu: alias 'a' is a name of a (gemm_cuda/a.cu)"),
    ],
)  # fmt: skip
def test_what_has_no_place_is_refused_with_its_files(kernels: list[Kernel], said: str) -> None:
    for given in (kernels, kernels[::-1]) if "two kernels" not in said and "alias 'o'" not in said else (kernels,):
        with pytest.raises(UsageError) as caught:
            in_order(given)
        assert said in str(caught.value)


def test_the_catalog_is_in_order() -> None:
    assert broken_kernels() == {}
    kernels = all_kernels()
    assert in_order([replace(kernel, step=None) for kernel in reversed(kernels)]) == list(kernels)
    for kernel in kernels:
        if kernel.after:
            before = find_kernel(kernel.after)
            assert (before.op, before.device) == (kernel.op, kernel.device)
            assert (before.step or 0) < (kernel.step or 0)
