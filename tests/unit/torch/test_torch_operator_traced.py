"""torch's operator where programs are traced: torch.compile, torch.export, torch.func, fake tensors, autocast."""

from __future__ import annotations

import shutil
from importlib import import_module
from typing import Any

import pytest

from support.torch_cases import REFUSED, Shape, reference, torch_and_gemm

torch: Any
torch, gemm = torch_and_gemm()
pytestmark = pytest.mark.filterwarnings("ignore")


def make(*shape: int) -> Any:
    return torch.randn(shape)


def layer(x: Any, weight: Any, bias: Any) -> Any:
    return torch.relu(gemm(x, weight, bias, beta=1.0, trans_b=True) * 2).sum()


def backends() -> list[str]:
    return ["aot_eager", *(["inductor"] if shutil.which("g++") else [])]


@pytest.mark.parametrize("backend", backends())
def test_it_compiles_as_a_whole_with_gradients(backend: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend=backend)
    operands = [make(*shape).requires_grad_() for shape in ((2, 6, 7), (5, 7), (5,))]
    torch.testing.assert_close(compiled(*operands), layer(*operands))
    ours = torch.autograd.grad(compiled(*operands), operands)
    torch.testing.assert_close(ours, torch.autograd.grad(layer(*operands), operands))


def test_one_compiled_program_serves_every_number_of_rows() -> None:
    torch._dynamo.reset()
    counter = import_module("torch._dynamo.testing").CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=counter)
    compiles = set()
    for rows, features in ((6, 7), (9, 11), (30, 5)):
        operands = [make(*shape).requires_grad_() for shape in ((2, rows, features), (4, features), (4,))]
        torch.testing.assert_close(compiled(*operands), layer(*operands))
        ours = torch.autograd.grad(compiled(*operands), operands)
        torch.testing.assert_close(ours, torch.autograd.grad(layer(*operands), operands))
        compiles.add(counter.frame_count)
    assert len(compiles) == 1


def test_scalars_may_change_between_calls() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(gemm, fullgraph=True, backend="aot_eager")
    operands = [make(*shape).requires_grad_() for shape in ((6, 7), (7, 5), (5,))]
    for alpha, beta in ((1.0, 0.0), (0.5, 2.0), (0.0, -1.0)):
        ours, theirs = (
            torch.autograd.grad(call(*operands, alpha=alpha, beta=beta).sin().sum(), operands)
            for call in (compiled, gemm)
        )
        torch.testing.assert_close(ours, theirs)


def test_rows_that_are_known_only_at_run_time() -> None:
    torch._dynamo.reset()

    def chosen(x: Any, weight: Any, bias: Any) -> Any:
        return gemm(x[x[:, 0] > 0], weight, bias, beta=1.0, trans_b=True)

    with import_module("torch._dynamo.config").patch(capture_dynamic_output_shape_ops=True):
        compiled = torch.compile(chosen, fullgraph=True, backend="aot_eager")
        operands = make(20, 7), make(5, 7), make(5)
        torch.testing.assert_close(compiled(*operands), chosen(*operands))


@pytest.mark.parametrize(("operands", "options", "said"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED])
def test_a_mistake_is_told_while_tracing(operands: Any, options: dict[str, Any], said: str) -> None:
    torch._dynamo.reset()
    ran: list[Any] = []
    compiled = torch.compile(lambda *x: gemm(*x, **options), fullgraph=True, backend=lambda *a: ran.append(a))
    with pytest.raises(Exception, match=said):
        compiled(*operands(make))
    assert ran == []


def test_fake_tensors_of_a_gpu_that_is_not_here() -> None:
    with import_module("torch._subclasses").FakeTensorMode():
        a, b = torch.empty(5, 7, device="cuda"), torch.empty(7, 3, device="cuda")
        found = gemm(a, b)
        assert (found.shape, str(found.device), found.stride()) == ((5, 3), "cuda:0", (3, 1))
        with pytest.raises(import_module("gemmlab").DeviceError, match="a lies on cuda:0, b lies on cpu"):
            gemm(a, torch.empty(7, 3))


def test_c_on_a_gpu_goes_to_the_library_s_call_as_it_is_or_spread(monkeypatch: pytest.MonkeyPatch) -> None:
    operator, given = import_module("gemmlab.torch.operator"), list[Any]()

    def take(*_: Any, beta: float, c: Any, alpha: float, trans_a: bool, trans_b: bool, precision: str) -> None:
        del alpha, trans_a, trans_b, precision
        given.append((beta, None if c is None else tuple(c.shape)))

    monkeypatch.setattr(operator, "gemm", take)
    with import_module("torch._subclasses").FakeTensorMode():
        a, b, c = (torch.empty(*shape, device="cuda") for shape in ((5, 7), (7, 3), (5, 3)))
        operator._product(a, b, c, beta=2.0)
        operator._product(a, b, torch.empty((), device="cuda"), beta=2.0)
        row, column, one = (torch.empty(*shape, device="cuda") for shape in ((7,), (7,), ((),)))
        operator._product(row, column, one, beta=2.0)
        operator._product(a, b, c)
        operator._product(a, b)
    assert given == [(2.0, (5, 3)), (2.0, (5, 3)), (2.0, ()), (0.0, None), (0.0, None)]


def test_it_is_exported() -> None:
    class Layer(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(make(5, 7))

        def forward(self, x: Any) -> Any:
            return gemm(x, self.weight, trans_b=True)

    own = Layer()
    program = torch.export.export(own, (make(6, 7),), dynamic_shapes=({0: torch.export.Dim("rows", min=2)},))
    assert "gemmlab.gemm" in program.graph_module.code
    x = make(9, 7)
    torch.testing.assert_close(program.module()(x), own(x))


@pytest.mark.parametrize(
    ("shapes", "axes", "options"),
    [
        (((4, 5, 7), (7, 3)), (0, None), {}),
        (((5, 4, 7), (7, 3, 4), (3,)), (1, 2, None), {"beta": 2.0}),
        (((7, 5), (4, 3, 7), (5, 3, 4)), (None, 0, 2), {"beta": 2.0, "trans_a": True, "trans_b": True}),
        (((5, 7), (7, 3), (4, 3)), (None, None, 0), {"beta": 2.0}),
        (((4, 2, 5, 7), (4, 7, 3), (4,)), (0, 0, 0), {"beta": 2.0}),
        (((4, 7), (7, 3), (4, 3)), (0, None, 0), {"beta": 2.0, "trans_a": True}),
        (((4, 7), (7, 3), ()), (0, None, None), {"beta": 2.0}),
        (((5, 7), (4, 7), (4, 5)), (None, 0, 0), {"beta": 2.0}),
        (((4, 7), (4, 7), (4,)), (0, 0, 0), {"beta": 2.0}),
        (((2, 5, 7), (4, 3, 7)), (None, 0), {"trans_b": True}),
        (((4, 7), (2, 7, 3), (4, 2, 3)), (0, None, 0), {"beta": 2.0}),
    ],
)
def test_vmap(shapes: tuple[Shape, ...], axes: tuple[int | None, ...], options: dict[str, Any]) -> None:
    operands = [make(*shape) for shape in shapes]
    found = torch.func.vmap(lambda *x: gemm(*x, **options), in_dims=axes)(*operands)
    expected = torch.func.vmap(lambda *x: reference(*x, **options), in_dims=axes)(*operands)
    torch.testing.assert_close(found, expected)


def test_many_gradients_at_once() -> None:
    def jacobian(call: Any) -> Any:
        return torch.autograd.functional.jacobian(
            lambda x, weight: call(x, weight, trans_b=True), (x, weight), vectorize=True
        )

    weight, x = make(3, 7), make(2, 5, 7)
    torch.testing.assert_close(jacobian(gemm), jacobian(reference))


def test_tangents_are_not_lost_in_silence() -> None:
    x, weight = make(5, 7), make(7, 3)
    with pytest.raises(ValueError, match="no forward-mode derivative"):
        torch.func.jvp(gemm, (x, weight), (x, weight))
    with torch.autograd.forward_ad.dual_level(), pytest.raises(ValueError, match="no forward-mode derivative"):
        gemm(torch.autograd.forward_ad.make_dual(x, x), weight)
    assert gemm(x, weight).shape == (5, 3)


def test_functional_gradients_are_refused_by_torch() -> None:
    with pytest.raises(RuntimeError, match="functorch transforms"):
        torch.func.grad(lambda x: gemm(x, x).sum())(make(4, 4))


def test_autocast_computes_in_float32() -> None:
    a, b = make(5, 7), make(7, 3).requires_grad_()
    half = a.bfloat16().requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(gemm(a, b), gemm(a.clone(), b))
        found = gemm(half, b)
        with pytest.raises(TypeError, match=r"a has dtype torch\.float64"):
            gemm(a.double(), b)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, half.float() @ b)
    ours, theirs = (torch.autograd.grad(result.sum(), (half, b)) for result in (found, half.float() @ b))
    torch.testing.assert_close(ours, theirs)
    with pytest.raises(TypeError, match=r"a has dtype torch\.bfloat16"):
        gemm(half, b)
