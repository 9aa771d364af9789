"""torch's operator on the CPU: results, gradients of first and second order, aliasing, layouts, what is refused."""

from __future__ import annotations

import runpy
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from support.torch_cases import CASES, REFUSED, Shape, reference, torch_and_gemm

torch, gemm = torch_and_gemm()
product: Any = import_module("gemmlab.torch.operator")
pytestmark = pytest.mark.filterwarnings("ignore")


def make(*shape: int) -> Any:
    return torch.randn(shape)


def learning(shapes: tuple[Shape, ...]) -> list[Any]:
    torch.manual_seed(0)
    return [make(*shape).requires_grad_() for shape in shapes]


@pytest.mark.parametrize(("shapes", "options"), CASES)
def test_results_and_gradients_are_torchs(shapes: tuple[Shape, ...], options: dict[str, Any]) -> None:
    operands = learning(shapes)
    found, expected = gemm(*operands, **options), reference(*operands, **options)
    assert found.is_contiguous()
    torch.testing.assert_close(found, expected)
    grad = torch.randn_like(expected)
    ours = torch.autograd.grad(found, operands, grad)
    theirs = torch.autograd.grad(expected, operands, grad, allow_unused=True, materialize_grads=True)
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(("shapes", "options"), CASES)
def test_gradients_have_gradients(shapes: tuple[Shape, ...], options: dict[str, Any]) -> None:
    def twice(call: Any) -> Any:
        operands = learning(shapes)
        grads = torch.autograd.grad(call(*operands, **options).sin().sum(), operands[:2], create_graph=True)
        return torch.autograd.grad(
            sum(grad.square().sum() for grad in grads), operands, allow_unused=True, materialize_grads=True
        )

    torch.testing.assert_close(twice(gemm), twice(reference), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shapes", "options"), CASES)
def test_opcheck_finds_nothing(shapes: tuple[Shape, ...], options: dict[str, Any]) -> None:
    found = torch.library.opcheck(torch.ops.gemmlab.gemm.default, tuple(learning(shapes)), options)
    assert set(found.values()) == {"SUCCESS"}
    assert len(found) == 4


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any]]:
    """The left and the right operand of each library call."""
    seen: list[tuple[Any, Any]] = []
    call = product.gemm

    def noting(left: Any, right: Any, **options: Any) -> Any:
        seen.append((left, right))
        return call(left, right, **options)

    monkeypatch.setattr(product, "gemm", noting)
    return seen


def test_only_the_gradients_asked_for_are_computed(calls: list[tuple[Any, Any]]) -> None:
    a, b, c = make(5, 7), make(7, 3), make(3)
    for asked, products in (((a,), 2), ((b,), 2), ((a, b), 3), ((c,), 1)):
        for tensor in (a, b, c):
            tensor.requires_grad_(any(tensor is other for other in asked))
        calls.clear()
        torch.autograd.grad(gemm(a, b, c, beta=2.0).sum(), asked)
        assert len(calls) == products


def test_transposes_are_read_in_place(calls: list[tuple[Any, Any]]) -> None:
    a, b = learning(((5, 7), (3, 7)))
    result = gemm(a, b.t())
    grad = torch.ones_like(result)
    torch.autograd.grad(result, (a, b), grad)
    memory = [tensor.detach().numpy() for tensor in (a, b, grad)]
    assert len(calls) == 3
    assert all(any(np.shares_memory(view, known) for known in memory) for pair in calls for view in pair)


def test_one_matrix_for_many_is_one_product(calls: list[tuple[Any, Any]]) -> None:
    x, weight = learning(((4, 5, 7), (3, 7)))
    torch.autograd.grad(gemm(x, weight, trans_b=True).sum(), (x, weight))
    assert [left.ndim for left, _ in calls] == [2, 2, 2]


@pytest.mark.parametrize("shapes", [((5, 7), (7, 3), (5, 3)), ((5, 0), (0, 3), (5, 3)), ((2, 5, 7), (7, 3), (3,))])
def test_the_result_is_new_and_operands_stay(shapes: tuple[Shape, ...]) -> None:
    operands = [make(*shape) for shape in shapes]
    before = [tensor.clone() for tensor in operands]
    result = gemm(*operands, alpha=0.0, beta=1.0)
    result.add_(1)
    torch.testing.assert_close(operands, before, rtol=0, atol=0)
    assert len({tensor.untyped_storage().data_ptr() for tensor in (result, *operands) if tensor.numel()}) == len(
        [tensor for tensor in (result, *operands) if tensor.numel()]
    )


def test_what_scalars_leave_out_is_not_read() -> None:
    nan, c = torch.full((4, 4), float("nan")), torch.ones(4, 4)
    assert gemm(c, c, nan).eq(4).all()
    assert gemm(nan, nan, c, alpha=0.0, beta=2.0).eq(2).all()


def test_any_view_is_read() -> None:
    wide = make(12, 30)
    for left in (wide[:, 3:10], wide.t()[3:15, :7], wide[::2, 1:15:2], wide[:1, :7].expand(4, 7)):
        torch.testing.assert_close(gemm(left, wide.t()[:7]), left @ wide.t()[:7])
    torch.testing.assert_close(gemm(torch._neg_view(wide), wide, trans_b=True), -wide @ wide.t())


@pytest.mark.parametrize(("operands", "options", "said"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED])
def test_a_mistake_is_told_in_the_same_words_without_memory(operands: Any, options: dict[str, Any], said: str) -> None:
    told = []
    for where in ("cpu", "meta"):
        given = [tensor.to(where) for tensor in operands(make)]
        with pytest.raises(ValueError, match=said) as error:
            gemm(*given, **options)
        told.append((type(error.value), str(error.value)))
    assert told[0] == told[1]


def test_devices_and_layouts_that_cannot_be_used_are_refused() -> None:
    a, b = make(5, 7), make(7, 3)
    errors = import_module("gemmlab")
    with pytest.raises(errors.DeviceError, match="a lies on cpu, b lies on meta; all tensors of a call must"):
        gemm(a, b.to("meta"))
    with pytest.raises(errors.ArgumentTypeError, match=r"a has layout torch\.sparse_coo.*a\.to_dense\(\) converts"):
        gemm(a.to_sparse(), b)
    for operands, said in (
        ((a.numpy(), b), r"^gemm: a is numpy\.ndarray, not a torch\.Tensor$"),
        ((a, None), r"^gemm: b is builtins\.NoneType, not a torch"),
        ((a, b, [1.0]), r"^gemm: c is builtins\.list, not a torch"),
    ):
        with pytest.raises(TypeError, match=said):
            gemm(*operands)


def test_the_result_is_that_of_the_library_call_at_any_number_of_threads() -> None:
    a, b = make(300, 200), make(200, 150)
    expected = import_module("gemmlab").gemm(a, b)
    threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            assert torch.equal(gemm(a, b), expected)
    finally:
        torch.set_num_threads(threads)


def test_an_older_torch_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.library, "register_autocast")
    with pytest.raises(ImportError, match=r"needs torch 2\.7 or newer; this is "):
        runpy.run_path(product.__file__)
