"""The choice of `gemm`: the kernel that would run and why, and the memory that it would take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gemmlab.core.errors import ArgumentTypeError
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.precision_rule import HIGHEST
from gemmlab.packs import Packed

if TYPE_CHECKING:
    from gemmlab.dispatch.choice_values import Choice


def explain_choice(
    a: Any,
    b: Any,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    device: str | None = None,
    precision: str = HIGHEST,
    kernel: str | None = None,
    config: Mapping[str, int] | None = None,
    reproducible: bool = False,
    memory_bytes: int | None = None,
) -> Choice:
    """Return the kernel that `gemm(a, b, ...)` runs, its configuration, and the reason. Nothing is compiled or run.

    `a` and `b` are arrays as `gemm` takes them, or shapes of contiguous, aligned matrices. `trans_a`, `trans_b`,
    `precision`, `kernel`, `config` and `reproducible` are those of `gemm`. `device` is by default that of the arrays;
    for shapes it is a GPU if there is one, else the CPU. It may also be a GPU that this machine lacks:
    `"emulated:sm_80"`, or a model by name, `"H200"`, `"L4"`.

    Print it for a table of everything that was considered, or read `kernel`, `config`, `basis` (`"record"`: measured at
    this size on this model; `"tuned"`: measured here by `gemmlab tune --library`; `"rule"`: by an estimate or a fixed
    rule; `"forced"`: by `kernel` or `config`), `reason`, `considered` and `order`: `"k"` where each sum is one chain of
    multiply-adds in the order of k, else a digest of its order (empty on a CPU); `workspace_bytes` is the memory that
    the call takes beside operands and result.

    With `memory_bytes`, the choice is that of a product in pieces that takes at most this memory of the device. Its
    `pieces` has their size, the bytes copied, and the predicted times of the link and the kernel.

    Raises `ArgumentTypeError`, `UsageError` and `DeviceError`, as `gemm` does.
    """
    from gemmlab.dispatch.reasons import explain

    for name, operand in (("a", a), ("b", b)):
        if isinstance(operand, Packed):
            raise ArgumentTypeError(
                f"gemm: {name} is a packed operand; pass its shape to learn the choice for an array"
            )
    call = Call(
        a, b, trans_a=trans_a, trans_b=trans_b, precision=precision, kernel=kernel, config=config,
        reproducible=reproducible,
    )  # fmt: skip
    if memory_bytes is not None:
        from gemmlab.pieces.explanation_of_pieces import explain_pieces

        return explain_pieces(call, device, memory_bytes)
    return explain(call, device)


def workspace_bytes(
    a: Any,
    b: Any,
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    device: str | None = None,
    precision: str = HIGHEST,
    kernel: str | None = None,
    config: Mapping[str, int] | None = None,
    reproducible: bool = False,
) -> int:
    """Return the bytes of memory that `gemm(a, b, ...)` takes on a GPU beside operands and result; 0 on a CPU.

    The call takes this memory from the allocator of the arrays' package, and returns it once the call is queued; up to
    64 KiB are memory that gemmlab keeps for the stream. Products of a batch that run one after the other share it. If
    there is too little, the call is computed without it, by multiply-adds, unless it names a kernel.

    `a`, `b`, `trans_a`, `trans_b`, `device`, `precision`, `kernel`, `config` and `reproducible` are those of
    `explain_choice`: arrays or their shapes, and any GPU.

    Raises `ArgumentTypeError`, `UsageError` and `DeviceError`, as `explain_choice` does.
    """
    return explain_choice(
        a, b, trans_a=trans_a, trans_b=trans_b, device=device, precision=precision, kernel=kernel, config=config,
        reproducible=reproducible,
    ).workspace_bytes  # fmt: skip
