"""The function `gemmlab.gemm`: arrays in, an array out.

`gemm` tries the compiled entry first, which needs no Python code for NumPy's float32 arrays. Products in pieces, with a
packed operand and on a GPU have functions of their own. All other calls go to `_general`, which prepares operands
(views stay views wherever a kernel can read them) or raises an error that says what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

from gemmlab.arrays.on_gpu import is_device_array
from gemmlab.arrays.on_host import host_views, is_host_array, like, one_package
from gemmlab.core.argument_checks import thread_count
from gemmlab.core.errors import ArgumentTypeError
from gemmlab.core.fork_lock import fork_lock
from gemmlab.core.memory_room import require_room_to_import
from gemmlab.core.precision import FLOAT32
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.precision_rule import HIGHEST, precision_for
from gemmlab.dispatch.request import Request, checked_target, host_operand, request, same
from gemmlab.packs import Packed

if TYPE_CHECKING:
    from gemmlab.dispatch.cpu_gemm import CpuProduct

Float32Array = npt.NDArray[np.float32]
_Entry = Callable[..., Float32Array | None]
_ARRAY = np.ndarray
"""`np.ndarray` under a single name, which is faster to read."""

_entry: _Entry | None = None
"""The compiled entry for the precision `"highest"`; `None` until it is loaded."""
_entries: dict[str, _Entry | None] = {}
"""The compiled entries for the other precisions, by the argument `precision` of `gemm`."""
_again: Callable[..., Any] | None = None
"""The function that is tried first for arrays on a GPU (`dispatch.cuda_again.again`); `None` until the first such call.
"""
_products: dict[str, CpuProduct] = {}
"""The compiled products for the CPU that are loaded, by the argument `precision` of `gemm`."""
_lock = fork_lock()


def gemm(
    a: Any,
    b: Any,
    *,
    alpha: SupportsFloat = 1.0,
    beta: SupportsFloat = 0.0,
    c: Any = None,
    out: Any = None,
    trans_a: bool = False,
    trans_b: bool = False,
    threads: SupportsIndex | None = None,
    precision: str = HIGHEST,
    kernel: str | None = None,
    config: Mapping[str, int] | None = None,
    reproducible: bool = False,
    device: str | None = None,
    memory_bytes: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Any:
    """`alpha * op(a) @ op(b) + beta * c`, where op transposes the last two axes for `trans_a` and `trans_b`.

    `a`, `b`, `c` and `out` are float32 arrays of one package, with any strides: of NumPy, of torch on the CPU, or of
    any package with DLPack there. The result is of the same package (of NumPy if that package has no `from_dlpack`),
    and no array is copied for that. Shapes are those of `numpy.matmul`: (..., m, k) by (..., k, n) gives (..., m, n),
    leading axes broadcast, and a one-dimensional operand is a row on the left or a column on the right, which no flag
    transposes.

    `b` may be a packed operand (`gemmlab.pack`), which is multiplied in float32.

    `c` broadcasts to the result's shape and is needed when `beta` is not 0; with `beta` 0 it is not read.
    `out` receives the result (it may be `c` itself, else it must share no element with an operand) and is returned.
    `alpha` 0 or k 0 gives beta * c without reading a and b. `threads` bounds the threads used, by default
    one for each physical core the process may use; the result is the same to the bit for any number.

    `precision` is the lowest precision that is enough: `"highest"`, IEEE float32 throughout; `"float32"`, errors like
    those of a chain of float32 multiply-adds, by tensor cores or a CPU's AMX tiles where that is faster (products that
    are exact in float32 need not be exact then); `"tf32"`, inputs may be rounded to ten bits behind the point.
    `"f16x3"`, `"bf16x6"`, `"bf16x9"`, `"tf32x3"` and `"bf16x3"` (16 bits of each operand) name one way to compute with
    parts of the operands, which is used wherever it runs. On a CPU the ways with bfloat16 need AMX, and all others
    compute in float32. `workspace_bytes` returns how much memory a call on a GPU takes for this, 512 MiB at most.
    Without that much memory, a call that names no kernel is computed by multiply-adds that need none, with the bits of
    `precision="highest", reproducible=True`.

    Arrays may also lie on a GPU (torch, CuPy, anything with `__cuda_array_interface__` or DLPack), all on the same one.
    Then the result is an array of the same package, made on its current stream. Nothing is copied to the host, and the
    call waits for nothing. Operands with contiguous rows or columns are read in place. `explain_choice` says which
    kernel runs and why.

    `reproducible` fixes the order of each sum: a row of the result has the same bits whatever the other rows are and
    however many there are, on a GPU with any number of multiprocessors and any table of measurements. On a GPU only
    kernels whose sums are one chain of multiply-adds in the order of k are then considered. For a small result and a
    large k that can take thousands of times as long, because k is not split over blocks.

    `kernel` forces a kernel of the catalog or of a `.cu` file. `config` sets its parameters, or without `kernel` those
    of the kernel that would run anyway.

    With `device`, `memory_bytes`, `checkpoint` or `progress`, two matrices are multiplied in pieces, so that they may
    be larger than a memory. The product takes at most `memory_bytes` on `device` (`"cuda:0"`, `"emulated"`, or `"cpu"`,
    the default). Operands, `c` and `out` lie in this machine's memory, in files (`numpy.memmap`) or in stores: objects
    with `shape`, `dtype` and slices, such as Zarr's arrays. Kernel, configuration and the order of each sum are those
    of the whole product, so the bits are the same (those of kernel `by_tile` may differ in the last place). In place of
    a kernel that divides k over the whole grid, the fastest one that does not is used. `progress(complete, all)` is
    called with numbers of pieces. `checkpoint` is the path of a journal: an interrupted call goes on when it is
    repeated. It needs an `out` that outlives the process.

    Raises `ArgumentTypeError` (a TypeError) for an operand that is not a float32 array, has a mask or requires a
    gradient, for arrays of several packages, for an `out` of JAX, which never changes an array, and for factors, flags
    and counts of a wrong type, `UsageError` (a ValueError) for shapes that do not fit, a `beta` without `c`, an `out`
    that is read-only, of another shape or overlapping, a thread count below 1 or one for arrays on a GPU, an unknown
    precision, kernel or parameter and a kernel that cannot compute this, for too little `memory_bytes` and a
    `checkpoint` of another product, `RecordError` for one that is no checkpoint, `CompileError` for a kernel that does
    not compile here, `DeviceError` for operands on two GPUs, for bfloat16 parts on a CPU without AMX and for a device
    that does not exist here, and `MemoryError`, also for the workspace of a kernel that the call names.
    """
    global _again
    # Half of a short call's time is Python's, and comparisons with None in a condition are the cheapest.
    if (
        kernel is None and config is None and device is None and memory_bytes is None and checkpoint is None
        and progress is None and (c is None or c is out) and not reproducible
        and type(a) is _ARRAY and type(b) is _ARRAY
    ):  # fmt: skip
        entry = _entry if precision == HIGHEST else _entries.get(precision) if type(precision) is str else None
        if entry is not None:
            result = entry(a, b, out, c, alpha, beta, trans_a, trans_b, threads)
            if result is not None:
                return result
    if precision != HIGHEST:
        precision_for(precision, (FLOAT32,))
    if device is not None or memory_bytes is not None or checkpoint is not None or progress is not None:
        from gemmlab.pieces.large_product import in_pieces

        call = Call(a, b, c, out, alpha, beta, trans_a, trans_b, threads, precision, kernel, config, reproducible)
        return in_pieces(call, device, memory_bytes, checkpoint, progress)
    if type(a) is not np.ndarray or type(b) is not np.ndarray:
        if isinstance(a, Packed) or isinstance(b, Packed):
            return _of_packed(
                Call(a, b, c, out, alpha, beta, trans_a, trans_b, threads, precision, kernel, config, reproducible)
            )
        if _again is not None and threads is None is config:
            known = _again(a, b, c, out, alpha, beta, trans_a, trans_b, precision, kernel, reproducible)
            if known is not None:
                return known
        if any(map(is_device_array, (a, b, c, out))):
            from gemmlab.dispatch.cuda_again import again
            from gemmlab.dispatch.cuda_calls import device_gemm

            _again = again
            return device_gemm(
                Call(a, b, c, out, alpha, beta, trans_a, trans_b, threads, precision, kernel, config, reproducible)
            )
        if is_host_array(a) or is_host_array(b):
            views = host_views("gemm", {"a": a, "b": b, "c": c, "out": out})
            result = gemm(
                **views, alpha=alpha, beta=beta, trans_a=trans_a, trans_b=trans_b, threads=threads, precision=precision,
                kernel=kernel, config=config, reproducible=reproducible,
            )  # fmt: skip
            return like(a, result) if out is None else out
    return _general(Call(a, b, c, out, alpha, beta, trans_a, trans_b, threads, precision, kernel, config, reproducible))


def _load(precision: str = HIGHEST) -> CpuProduct:
    """Return the compiled CPU product of a precision. The first call compiles it, or loads it from the cache."""
    global _entry
    with _lock:
        if precision not in _products:
            require_room_to_import("gemmlab.dispatch.cpu_gemm")
            from gemmlab.dispatch.cpu_gemm import load_product

            _products[precision] = product = load_product(precision)
            if precision == HIGHEST:
                _entry = product.python_entry
            else:
                _entries[precision] = product.python_entry
        return _products[precision]


def checked(call: Call) -> tuple[Request, Float32Array | None, int | None]:
    """Return the operands of a call for the CPU, a view of `out`, and the number of threads; these two are `None` if
    they are not given. In place of a packed b there are zeros.

    Raises the errors of `gemm` for arrays that it does not take.
    """
    call = without_packed(call)
    try:
        operands = request(call, host_operand)
        count = thread_count("gemm", call.threads)
        target = None if call.out is None else checked_target(host_operand("gemm", "out", call.out).view, operands)
    except ArgumentTypeError:
        one_package("gemm", call.arrays)
        raise
    return operands, target, count


def without_packed(call: Call) -> Call:
    """Return the call with an array of zeros in place of a packed b. Raises for a packed operand that it cannot use."""
    if Packed not in map(type, (call.a, call.b, call.c, call.out)):
        return call
    from gemmlab.dispatch.packed_product import require_usable, zeros_of

    require_usable(call, Packed)
    return call._replace(b=zeros_of(call.b.shape))


def _general(call: Call) -> Float32Array:
    """Compute the product of any views on the CPU."""
    operands, target, count = checked(call)
    if target is None:
        target = _fresh_of(operands.shape)
    if operands.addend is not None and not same(operands.addend, target):
        np.copyto(target, operands.addend)
    if call.forced:
        require_room_to_import("gemmlab.dispatch.cpu_forced")
        from gemmlab.dispatch.cpu_forced import forced_product
        from gemmlab.dispatch.cpu_precision import forced_way

        extents = (operands.left.shape[-2], operands.right.shape[-1], operands.left.shape[-1])
        way = forced_way(call, extents)
        run = forced_product(way.kernel.id, way.config).run
        for left, right, full in operands.products(target):
            if call.reproducible:
                _in_one_order(left, right, full, operands.alpha, operands.beta, count, run)
            else:
                run(left, right, full, operands.alpha, operands.beta, count)
    elif call.reproducible:
        _in_one_order(*operands.stacks(target), operands.alpha, operands.beta, count)
    else:
        _load(call.precision).run(*operands.stacks(target), operands.alpha, operands.beta, count)
    return target if call.out is None else cast("Float32Array", call.out)


def _of_packed(call: Call) -> Any:
    """Compute a product whose right operand is packed."""
    from gemmlab.dispatch.packed_product import by_strips

    packed = call.b
    foreign = is_host_array(call.a)
    arrays = {"a": call.a, "c": call.c, "out": call.out}
    views = host_views("gemm", arrays) if foreign else arrays
    operands, target, count = checked(call._replace(**views))
    result = _fresh_of(operands.shape) if target is None else target
    if operands.addend is not None and not same(operands.addend, result):
        np.copyto(result, operands.addend)

    def run(lefts: Float32Array, rights: Float32Array, full: Float32Array) -> None:
        compute = _in_one_order if call.reproducible else _load().run
        compute(lefts, rights, full, operands.alpha, operands.beta, count)

    left, _right, full = operands.stacks(result)
    if full.size:
        by_strips(packed, left, full, operands.beta, run)
    if call.out is not None:
        return call.out
    return like(call.a, result) if foreign else result


def _in_one_order(
    lefts: Float32Array, rights: Float32Array, full: Float32Array, alpha: float, beta: float, count: int | None,
    run: Callable[[Float32Array, Float32Array, Float32Array, float, float, int | None], object] | None = None,
) -> None:  # fmt: skip
    """Compute stacks of products, by `run` or by the usual kernel, so that a result's bits depend on its row of op(a)
    and its column of op(b) alone.

    Single rows and single columns have separate loops, which sum in orders that depend on the layout. So a single row
    is computed twice, as two rows, and a single column as two columns.
    """
    run = run or _load().run
    if 1 not in full.shape[-2:]:
        run(lefts, rights, full, alpha, beta, count)
        return
    m, n = (2 if extent == 1 else extent for extent in full.shape[-2:])
    wider = np.empty((*full.shape[:-2], m, n), np.float32)
    if beta:
        np.copyto(wider, full)
    lefts = np.broadcast_to(lefts, (*lefts.shape[:-2], m, lefts.shape[-1]))
    rights = np.broadcast_to(rights, (*rights.shape[:-1], n))
    run(lefts, rights, wider, alpha, beta, count)
    np.copyto(full, wider[..., : full.shape[-2], : full.shape[-1]])


def _fresh_of(shape: tuple[int, ...]) -> Float32Array:
    try:
        return np.empty(shape, np.float32)
    except ValueError as error:
        raise MemoryError(f"gemm: a result of shape {shape} is larger than any array can be") from error
