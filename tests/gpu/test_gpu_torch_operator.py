"""torch's operator on a GPU: results, gradients, torch.compile, opcheck, graph capture, streams."""

from __future__ import annotations

import shutil
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from gemmlab.core.precision import FLOAT32, TF32
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.ops.op import Float32Array
from gemmlab.verify.elementwise import compare
from support.torch_cases import CASES, REFUSED, Shape, reference, torch_and_gemm

torch, gemm = torch_and_gemm()
pytestmark = [pytest.mark.usefixtures("gpu"), pytest.mark.filterwarnings("ignore")]
compiles = pytest.mark.skipif(
    find_spec("triton") is None or not any(map(shutil.which, ("cc", "gcc", "clang"))),
    reason="torch.compile needs Triton and a C compiler",
)


def make(*shape: int) -> Any:
    return torch.randn(shape, device="cuda")


def learning(shapes: tuple[Shape, ...]) -> list[Any]:
    torch.manual_seed(0)
    return [make(*shape).requires_grad_() for shape in shapes]


@pytest.mark.parametrize(("shapes", "options"), CASES)
def test_results_and_gradients_are_torchs(shapes: tuple[Shape, ...], options: dict[str, Any]) -> None:
    operands = learning(shapes)
    found, expected = gemm(*operands, **options), reference(*operands, **options)
    assert (found.device, found.is_contiguous()) == (expected.device, True)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    grad = torch.randn_like(expected)
    ours = torch.autograd.grad(found, operands, grad)
    theirs = torch.autograd.grad(expected, operands, grad, allow_unused=True, materialize_grads=True)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("shapes", "options"), CASES)
def test_opcheck_finds_nothing(shapes: tuple[Shape, ...], options: dict[str, Any]) -> None:
    torch.library.opcheck(torch.ops.gemmlab.gemm.default, tuple(learning(shapes)), options, rtol=1e-4, atol=1e-4)


def test_any_layout_is_read() -> None:
    a, b = make(150, 70), make(70, 130)
    wide = make(150, 80)
    wide[:, 3:73] = a
    for left in (a, a.t().contiguous().t(), wide[:, 3:73], torch._neg_view(-a)):
        for right in (b, b.t().contiguous().t()):
            torch.testing.assert_close(gemm(left, right), a @ b, rtol=1e-4, atol=1e-4)


@compiles
@pytest.mark.parametrize("dynamic", [False, True])
def test_it_compiles_as_a_whole(dynamic: bool) -> None:
    def step(x: Any, weight: Any, bias: Any) -> Any:
        return torch.relu(gemm(x, weight, bias, beta=1.0, trans_b=True) * 2).sum()

    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic)
    for rows in (64, 96, 130):
        operands = learning(((rows, 70), (50, 70), (50,)))
        torch.testing.assert_close(compiled(*operands), step(*operands), rtol=1e-4, atol=1e-2)
        ours = torch.autograd.grad(compiled(*operands), operands)
        torch.testing.assert_close(ours, torch.autograd.grad(step(*operands), operands), rtol=1e-4, atol=1e-3)


@compiles
def test_it_compiles_into_graphs_of_the_gpu() -> None:
    def step(x: Any, weight: Any) -> Any:
        return torch.relu(gemm(x, weight, trans_b=True))

    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, mode="reduce-overhead")
    weight = make(96, 64)
    for _ in range(5):
        x = make(128, 64)
        torch.testing.assert_close(compiled(x, weight).clone(), step(x, weight), rtol=1e-4, atol=1e-4)


def test_a_step_with_gradients_is_captured_and_replayed() -> None:
    x, weight, bias = learning(((128, 64), (96, 64), (96,)))

    def step() -> list[Any]:
        result = gemm(x, weight, bias, beta=1.0, trans_b=True)
        return [result, *torch.autograd.grad(result.square().sum(), (x, weight, bias))]

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    with torch.no_grad():
        for operand in (x, weight, bias):
            operand.copy_(torch.randn_like(operand))
    graph.replay()
    torch.cuda.synchronize()
    for found, expected in zip(captured, step(), strict=True):
        assert torch.equal(found, expected)


def test_it_runs_on_the_current_stream() -> None:
    x = torch.zeros(512, 512, device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        # The first on a stream takes memory for its results, and may take its time.
        gemm(x, x)
        stream.synchronize()
        torch.cuda._sleep(200_000_000)
        x.fill_(1)
        found = gemm(x, x)
        assert not stream.query()
    stream.synchronize()
    assert found.eq(512).all()


def test_autocast_computes_in_float32() -> None:
    a, b = make(64, 48), make(48, 32)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        found = gemm(a.bfloat16(), b)
        assert torch.equal(gemm(a, b), gemm(a.clone(), b))
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, a.bfloat16().float() @ b, rtol=1e-4, atol=1e-4)


def test_tf32_only_when_asked_for() -> None:
    # All lie a quarter of TF32's unit above a number that TF32 has. What inputs lose by rounding then adds up, to ten
    # times float32's bound; of random numbers most of it cancels, and the result would pass for float32.
    m, n, k = 2048, 2048, 512
    rng = np.random.default_rng(0)
    inputs: dict[str, Float32Array] = {
        name: ((1024.25 + rng.integers(0, 1024, shape)) / 1024).astype(np.float32)
        for name, shape in (("a", (m, k)), ("b", (k, n)), ("c", (m, n)))
    }
    expected = {name: GemmOp().reference(GemmProblem(m, n, k), inputs, precision=name)["c"] for name in (FLOAT32, TF32)}
    left, right = (torch.from_numpy(inputs[name]).cuda().requires_grad_() for name in "ab")

    def precisions(asked: str) -> list[str]:
        """Those whose bounds the result keeps."""
        found = gemm(left, right, precision=asked)
        found.sum().backward()
        values = found.detach().cpu().numpy()
        return [name for name in expected if compare("c", values, expected[name], k).mismatch is None]

    assert precisions("highest") == [FLOAT32, TF32]
    assert precisions("tf32") == ([TF32] if torch.cuda.get_device_capability() >= (8, 0) else [FLOAT32, TF32])


@pytest.mark.parametrize(("operands", "options", "said"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED])
def test_what_cannot_be_multiplied_is_refused(operands: Any, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        gemm(*operands(make), **options)


def test_tensors_of_two_devices_are_refused() -> None:
    with pytest.raises(import_module("gemmlab").DeviceError, match=r"a lies on cuda:0, b lies on cpu"):
        gemm(make(5, 7), torch.ones(7, 3))
