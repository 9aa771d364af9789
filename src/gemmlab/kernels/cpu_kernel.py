"""The common part of CPU kernels: their descriptor, and the signature of those that compute a matrix product.

Every one is a function `status = name(m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, ...)` on row-major float32
matrices; `trans_a`, `trans_b`, `workspace` and `threads` follow if a kernel takes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from gemmlab.codegen.amx.blocked_product import tile_blocks
from gemmlab.codegen.blocking import Blocks, cache_blocks
from gemmlab.codegen.microkernel import Tile, best_tile
from gemmlab.codegen.product import product_workspace_bytes
from gemmlab.codegen.thread_division import ThreadDivision
from gemmlab.core.errors import DeviceError
from gemmlab.core.expr import parse
from gemmlab.core.hardware import cpu_info
from gemmlab.core.precision import FLOAT32
from gemmlab.core.program import Config, Program
from gemmlab.core.sources import Sources
from gemmlab.devices.cpu_tiles import tiles_refusal
from gemmlab.ir.build import generator_fingerprint
from gemmlab.ir.function import Function
from gemmlab.ir.module import Module
from gemmlab.ir.target import WIDTHS, host_target
from gemmlab.ir.types import F32, I64, Type, pointer
from gemmlab.ir.values import Operand, Value
from gemmlab.kernels.kernel import Kernel
from gemmlab.probes.catalog import probe_of

FLOATS = pointer(F32)
ARGUMENTS: Mapping[str, Type] = {
    "m": I64,
    "n": I64,
    "k": I64,
    "alpha": F32,
    "a": FLOATS,
    "lda": I64,
    "b": FLOATS,
    "ldb": I64,
    "beta": F32,
    "c": FLOATS,
    "ldc": I64,
    "trans_a": I64,
    "trans_b": I64,
    "workspace": FLOATS,
    "threads": I64,
}
PLAIN = ("m", "n", "k", "alpha", "a", "lda", "b", "ldb", "beta", "c", "ldc")
TRANSPOSABLE = (*PLAIN, "trans_a", "trans_b")
ALL_LAYOUTS = ("nn", "nt", "tn", "tt")


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a kernel under construction, as attributes, and the configuration that it is built for."""

    module: Module
    config: Config
    values: Mapping[str, Value]

    def __getattr__(self, name: str) -> Value:
        try:
            return self.values[name]
        except KeyError:
            raise AttributeError(f"the kernel has no argument {name!r}") from None


Gemm = Arguments
"""The arguments of a matrix product."""
Emit = Callable[[Function, Arguments], None]


def update(fn: Function, g: Gemm, where: Value, total: Value) -> None:
    """Emit `*where = alpha * total + beta * *where` for one element.

    If beta is 0, the element is not read; if alpha or k is 0, `total` is ignored.
    """
    result = fn.var(F32, 0.0)
    with fn.when(g.alpha.differs(0.0) & (g.k > 0)):
        result.set(total * g.alpha)
    with fn.when(g.beta.differs(0.0)):
        result.set(fn.fma(g.beta, fn.load(where), result.read()))
    fn.store(where, result)


def scale_row(fn: Function, g: Gemm, row: Value) -> None:
    """Emit `row = beta * row` for `g.n` elements; if beta is 0, zeros are written and nothing is read."""
    with fn.choose(g.beta.equals(0.0)) as fresh:
        with fresh.yes(), fn.range(g.n) as j:
            row[j] = 0.0
        with fresh.no(), fn.range(g.n) as j:
            row[j] = row[j] * g.beta


def add_row(fn: Function, g: Gemm, row: Value, element: Value, b_row: Value, n: Operand) -> None:
    """Emit `row += alpha * element * b_row` for `n` elements.

    alpha multiplies the product, not the element: alpha * element may be subnormal and lose its digits.
    """
    with fn.choose(g.alpha.equals(1.0)) as plain:
        with plain.yes(), fn.range(n) as j:
            row[j] = fn.fma(element, b_row[j], row[j])
        with plain.no(), fn.range(n) as j:
            row[j] = fn.fma(g.alpha, element * b_row[j], row[j])


def strides(fn: Function, g: Gemm) -> tuple[Value, Value, Value, Value]:
    """Emit code for the row and column strides of op(A), then those of op(B), in elements, and return the values."""
    turned_a, turned_b = g.trans_a.differs(0), g.trans_b.differs(0)
    return (
        fn.select(turned_a, 1, g.lda),
        fn.select(turned_a, g.lda, 1),
        fn.select(turned_b, 1, g.ldb),
        fn.select(turned_b, g.ldb, 1),
    )


ROOM = 2
"""The workspace of a thread, as a multiple of what the default blocks need; other configurations must fit into it."""


def job_arguments(fn: Function, g: Gemm) -> tuple[Value, ...]:
    """Emit code for the `strides`, and return the values of all arguments in `macrokernel.JOB` except the workspace."""
    a_row, a_col, b_row, b_col = strides(fn, g)
    return g.m, g.n, g.k, g.alpha, g.a, a_row, a_col, g.b, b_row, b_col, g.beta, g.c, g.ldc


def thread_resources(_lanes: int) -> dict[str, int]:
    """Return the bytes of a thread's workspace, as `{"workspace_bytes": ...}`.

    The function itself is the argument `resources` of `cpu_kernel`. The bytes are the same for every kernel and vector
    width, because all share one pool.
    """
    tiled = 0 if tiles_refusal() else tile_blocks(cpu_info().l2_bytes, 9).workspace_bytes
    return {"workspace_bytes": multiply_add_bytes() + tiled}


@cache
def multiply_add_bytes() -> int:
    """Return the bytes of a thread's workspace that products by multiply-adds use, at any width and configuration."""
    widths = [width for width in WIDTHS if width <= host_target().lanes]
    needs = [product_workspace_bytes(best_tile(host_target(width)), blocks_for(width)) for width in widths]
    return ROOM * (-(-max(needs) // 64) * 64)


def blocks_for(lanes: int, tile: Tile | None = None) -> Blocks:
    """Return this machine's cache blocks for a register tile, by default `best_tile` for vectors of `lanes` floats.

    With `tile`, `lanes` is not used.
    """
    return cache_blocks(tile or best_tile(host_target(lanes)), *_caches())


def _caches() -> tuple[int, int, int]:
    """Return the facts that determine the blocks: bytes and ways of the L1 data cache (1 if unknown), bytes of L2."""
    info = cpu_info()
    level1 = info.cache(1)
    return info.l1d_bytes, level1.ways if level1 else 1, info.l2_bytes


def cpu_kernel(
    file: str,
    *,
    after: str | None,
    summary: str,
    idea: str,
    source: str,
    emit: Emit,
    branch: bool = False,
    aliases: tuple[str, ...] = (),
    args: Sequence[str] = PLAIN,
    layouts: tuple[str, ...] = ("nn",),
    params: Config | None = None,
    tune: Mapping[str, tuple[int, ...]] | None = None,
    search: Mapping[str, tuple[int, ...]] | None = None,
    objection: Callable[[Config], str] = lambda _config: "",
    meant: Callable[[Config], Config] = lambda config: config,
    workspace_bytes: Callable[[Any, Config], int] = lambda _problem, _config: 0,
    vectorize: bool = False,
    threaded: bool = False,
    divide: Callable[[Config, Any, int], ThreadDivision] | None = None,
    exports: tuple[str, ...] = (),
    resources: Callable[[int], Mapping[str, int]] = lambda _lanes: {},
    unavailable: Callable[[], str] = lambda: "",
    precision: str = FLOAT32,
    precisions: Mapping[int, str] | None = None,
    op: str = "gemm",
    types: Mapping[str, Type] = ARGUMENTS,
    from_problem: tuple[str, ...] = (),
    roundings: Callable[[Config, Mapping[str, Any]], int | None] = lambda _instance, _scalars: None,
) -> Kernel:
    """Return the descriptor of the kernel in `file`, whose name without suffix is its id.

    `emit` writes the function's body; the function returns 0 unless the body returns something else. The kernel takes
    the arguments `args`, whose types are in `types`. `resources(lanes)` states the resources that the code needs.
    If `params` has no `LANES` (float32 vector width), it gets `LANES` = 0, which stands for the processor's widest. If
    `tune` has no `LANES`, it gets 4, 8 and 16. `meant` replaces zeros in the other parameters by the values that they
    stand for. `exports` and `vectorize` are those of `Program`; all other arguments are those of `Kernel`.
    """
    path = Path(file)
    name = path.stem
    config = {"LANES": 0, **(params or {})}
    sources = Sources([path, Path(__file__)])

    def make_program(chosen: Config, target: str) -> Program:
        lanes = int(target.split(":")[1])
        if why := unavailable():
            raise DeviceError(f"{name}: {why}")

        def text() -> str:
            module = Module(host_target(lanes), probe_of(target))
            signature = [(argument, types[argument]) for argument in args]
            with module.function(name, signature, I64, exported=True) as fn:
                emit(fn, Arguments(module, chosen, dict(zip(args, fn.args, strict=True))))
                fn.finish(0)
            return module.text()

        return Program(
            kernel=name,
            language="llvm",
            target=target,
            entry=name,
            fingerprint=_fingerprint(sources, chosen),
            emit=text,
            exports=exports,
            vectorize=vectorize,
            resources=resources(lanes),
        )

    def built(chosen: Config) -> Config:
        widest = host_target().lanes
        lanes = chosen["LANES"] or widest
        return {**(meant(chosen) if lanes <= widest else chosen), "LANES": lanes}

    return Kernel(
        id=name,
        op=op,
        device="cpu",
        after=after,
        branch=branch,
        aliases=aliases,
        summary=summary,
        idea=idea,
        source=source,
        params=config,
        args=tuple(args),
        make_program=make_program,
        path=path,
        layouts=layouts,
        tune={"LANES": (4, 8, 16)} | dict(tune or {}),
        search=search or {},
        objection=objection,
        meant=built,
        workspace_bytes=workspace_bytes,
        threaded=threaded,
        divide=divide,
        unavailable=unavailable,
        precision=precision,
        precisions=precisions or {},
        from_problem=from_problem,
        roundings=roundings,
    )


def keeps(*constraints: str) -> Callable[[Config], str]:
    """Return an `objection` of `Kernel`: a function that returns the first of these constraints that is broken.

    Constraints are expressions over a configuration. The function returns an empty text if all hold.
    """
    expressions = [parse(text) for text in constraints]
    return lambda config: next((each.text for each in expressions if not each(config)), "")


def _fingerprint(sources: Sources, config: Config) -> str:
    """Return a key that changes with the kernel's file, this file, the generator, the configuration, this machine's
    caches and whether AMX tiles work. It is empty if a file has changed since it was loaded.
    """
    own, generator = sources.fingerprint(), generator_fingerprint()
    if not (own and generator):
        return ""
    facts = repr((own, generator, sorted(config.items()), _caches(), tiles_refusal()))
    return sha256(facts.encode()).hexdigest()
