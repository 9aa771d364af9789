"""Blocks of the tensor-core rungs' page: times beside cuBLAS with TF32, least cycles by unit, a block for each rung."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from blocks.counted import ISSUE, L1, Counted, counted
from blocks.diffs import link
from blocks.gpu_counts import COUNTS, GPU, counted_on, number
from blocks.markdown import interval, markdown_table, provenance
from blocks.records import from_record, load
from blocks.speeds import Speed, Speeds, below, square
from gemmlab.analysis.issue_slots import peak_gflops
from gemmlab.core.gpu import model
from gemmlab.core.precision import TF32
from gemmlab.core.records import Record
from gemmlab.kernels.catalog import ladder
from gemmlab.kernels.kernel import Kernel
from gemmlab.results.climb_rows import digits, percent, short_size, times

TIMES = ("h200/tf32.json", "h200/climb-cuda.json")
"""Records of times: the first one that exists is shown. The second has one size only."""
TOP, VENDOR = 4096, "cublas:tf32"
TENSOR = "tensor cores"
LOADS, COPIES = "shared_load", "async_copy"


def rungs() -> Sequence[Kernel]:
    """Return the TF32 rungs, the lowest first."""
    return [kernel for kernel in ladder("gemm", "cuda") if kernel.precision == TF32]


def times_record() -> Record | None:
    return next((record for name in TIMES if (record := load(name)) is not None), None)


def peak_tflops() -> float:
    """Return the data sheet's rate of the tensor cores with TF32, at the boost clock, in TFLOP/s."""
    found = peak_gflops("HMMA", model(GPU))
    assert found is not None, f"the rate of {GPU} is not known"  # noqa: S101 - it is in the table
    return found / 1e3


def demand(item: Counted) -> dict[str, float]:
    """Return the least cycles that an SM needs for 1000 multiply-adds, by unit."""
    gpu, needs = model(GPU), item.demand()
    rate = peak_tflops() * 1e6 / gpu.sms / gpu.boost_mhz / 2
    return {TENSOR: 1000 / rate, ISSUE: needs[ISSUE], L1: needs[L1]}


def ladder_table() -> str:
    """Return a table of each rung's time and speed at `TOP`, and which version of its code was timed."""
    record = times_record()
    if record is None:
        return f"*Not measured yet: there is no record benchmarks/results/{TIMES[0]}.*"
    speeds, size = Speeds(record, TF32), square(TOP)
    vendor = speeds.at(VENDOR, size)
    lines = []
    for kernel in rungs():
        speed, lower = speeds.rung(kernel.id, size), _below(kernel)
        if speed is None:
            continue
        before = None if lower is None else speeds.rung(lower.id, size)
        lines.append([
            f"[`{kernel.id}`](#{kernel.id})", digits(speed.time_us / 1e3),
            digits(speed.tflops) if speed.right else "wrong", percent(speed.tflops / peak_tflops()),
            "" if before is None else times(speed.to(before).value),
            "" if vendor is None else interval(speed.to(vendor, resamples=2000)), version(kernel, speed),
        ])  # fmt: skip
    for name in speeds.peers:
        peer = speeds.at(name, size)
        if peer is not None:
            share = percent(peer.tflops / peak_tflops())
            lines.append([name, digits(peer.time_us / 1e3), digits(peer.tflops), share, "", "", ""])
    heading = ["rung", "ms", "TFLOP/s", "of the tensor peak", "x rung before", "x cuBLAS TF32 (95 %)", "measured"]
    note = (
        f"At {TOP}³, measured on {provenance(record)}, cold caches. The tensor peak is the data sheet's rate at "
        f"{model(GPU).boost_mhz} MHz, {peak_tflops():.0f} TFLOP/s; it was not measured."
    )
    return "\n\n".join([markdown_table(heading, lines, ["measured"]), note])


def size_table() -> str:
    """Return a section with one line for each rung and one column for each size: TFLOP/s and the ratio to cuBLAS. It is
    empty if only one size was timed.
    """
    record = times_record()
    speeds = None if record is None else Speeds(record, TF32)
    if record is None or speeds is None:
        return ""
    # Rungs that are new have no times yet.
    timed = [kernel for kernel in rungs() if any(speeds.rung(kernel.id, size) for size in speeds.sizes)]
    names = [*(f"kernel:{kernel.id}" for kernel in timed), *speeds.peers]
    sizes = [size for size in speeds.sizes if all(speeds.at(name, size) for name in names)]
    if len(sizes) < 2:
        return ""
    lines = []
    for name in names:
        found = [(speed, speeds.at(VENDOR, size)) for size in sizes if (speed := speeds.at(name, size))]
        cells = [_against(speed, None if name in speeds.peers else vendor) for speed, vendor in found]
        lines.append([name if name in speeds.peers else f"`{name.removeprefix('kernel:')}`", *cells])
    table = markdown_table(["TFLOP/s (x cuBLAS TF32)", *(short_size(size) for size in sizes)], lines)
    return "\n\n".join(["### By size", table, f"Measured on {provenance(record)}, cold caches."])


def _against(speed: Speed, vendor: Speed | None) -> str:
    if not speed.right:
        return "wrong"
    return digits(speed.tflops) + ("" if vendor is None else f" ({speed.to(vendor).value:.2f})")


def version(kernel: Kernel, speed: Speed) -> str:
    """Return in words whether the code that was timed is the code that was counted, which is the present one, and if
    not, how its configuration or compiler differs.
    """
    now = _counts().get(kernel.id)
    if now is None:
        return "a version that is not known"
    if speed.facts.get("code_sha256") == now.code:
        return "this version"
    other = [f"`{name}` {value}" for name, value in speed.config.items() if now.config.get(name) != value]
    said = [f"with {', '.join(other)}"] if other else []
    if speed.facts.get("compiler") != now.compiler:
        said.append(f"compiled by {speed.facts.get('compiler')}")
    return f"other code, {' and '.join(said)}" if said else "an earlier version"


def demand_table(record: Record) -> str:
    """Return a table with one line for each rung: the least cycles of each unit, and the speed that they allow."""
    lines = []
    for kernel in rungs():
        item = _counts().get(kernel.id)
        if item is None:
            continue
        needs = demand(item)
        most = max(needs.values())
        cells = [f"**{digits(need)}**" if need == most else digits(need) for need in needs.values()]
        share = needs[TENSOR] / most
        lines.append([f"[`{kernel.id}`](#{kernel.id})", *cells, percent(share), digits(share * peak_tflops())])
    heading = ["rung", TENSOR, ISSUE, L1, "of the tensor peak at most", "TFLOP/s at most"]
    note = (
        f"Cycles an SM needs at least for 1000 multiply-adds, by unit; the largest, in bold, bounds the rung. "
        f"They leave out what TMA copies and what wgmma reads from shared memory. {counted_on(record)}"
    )
    return "\n\n".join([markdown_table(heading, lines), note])


def _products(counted: Counted) -> int:
    """Return the executions of tensor-core instructions, by warps."""
    return counted.opcodes.get("HMMA", 0) + counted.opcodes.get("HGMMA", 0)


FIGURES: Mapping[str, Callable[[Counted], str]] = {
    "warp instructions": lambda c: number(c.per_1000(c.facts["instructions"])),
    "multiply-adds an HMMA or HGMMA": lambda c: number(c.fmas / _products(c)),
    "instructions an HMMA or HGMMA": lambda c: digits(c.facts["instructions"] / _products(c)),
    "loads of fragments": lambda c: number(c.per_1000(c.facts[f"{LOADS}_requests"])),
    "wavefronts of these": lambda c: number(c.per_1000(c.facts[f"{LOADS}_wavefronts"])),
    "of them excess": lambda c: percent(_share(c.facts[f"{LOADS}_excess"], c.facts[f"{LOADS}_wavefronts"])),
    "wavefronts of cp.async": lambda c: number(c.per_1000(c.facts[f"{COPIES}_wavefronts"])),
    "excess of these": lambda c: percent(_share(c.facts[f"{COPIES}_excess"], c.facts[f"{COPIES}_wavefronts"])),
    "global bytes read by threads": lambda c: number(c.per_1000(c.read_bytes)),
    "sectors a store": lambda c: number(c.facts["global_store_sectors_per_request"]),
}
"""Heading -> a function that returns a counter's text; counts are for 1000 multiply-adds."""


def _below(kernel: Kernel) -> Kernel | None:
    """Return the TF32 rung that another comes after; `None` for the first, which comes after a rung without tensor
    cores.
    """
    lower = below(kernel)
    return lower if lower is not None and lower.precision == TF32 else None


def rung_block(kernel: Kernel) -> str:
    """Return the block of one rung: its counters and least cycles beside those of the rung before, its time, code and
    source.
    """
    seen = [_counts()[one.id] for one in (_below(kernel), kernel) if one is not None and one.id in _counts()]
    lines = [[heading, *(figure(item) for item in seen)] for heading, figure in FIGURES.items()]
    lines += [[f"cycles: {unit}", *(_cycles(item, unit) for item in seen)] for unit in (TENSOR, ISSUE, L1)]
    table = markdown_table(["for 1000 multiply-adds", *(f"`{item.kernel}`" for item in seen)], lines)
    if kernel.id not in _counts():
        table = f"*Not counted yet: `make counts` adds it to benchmarks/results/{COUNTS}.*"
    parts = {
        "Configuration": ", ".join(f"`{name}` {value}" for name, value in kernel.params.items()),
        "Measured": _measured(kernel),
        "Code": link(kernel),
        "Source": kernel.source,
    }
    return "\n\n".join([table, *(f"**{name}.** {text}." for name, text in parts.items() if text)])


def _cycles(item: Counted, unit: str) -> str:
    needs = demand(item)
    return f"**{digits(needs[unit])}**" if needs[unit] == max(needs.values()) else digits(needs[unit])


def _measured(kernel: Kernel) -> str:
    record = times_record()
    speeds = None if record is None else Speeds(record, TF32)
    speed = None if speeds is None else speeds.rung(kernel.id, square(TOP))
    if speeds is None or speed is None:
        return ""
    vendor = speeds.at(VENDOR, speed.size)
    beside = "" if vendor is None else f", {times(speed.to(vendor).value)} x cuBLAS with TF32"
    which = version(kernel, speed)
    return f"{which[0].upper()}{which[1:]}: {digits(speed.tflops)} TFLOP/s at {TOP}{beside}"


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


@cache
def _counts() -> Mapping[str, Counted]:
    record = load(COUNTS)
    return {} if record is None else {item.kernel: item for item in counted(record)}


BLOCKS: Mapping[str, Callable[[], str]] = {
    "tensor-ladder": ladder_table,
    "tensor-sizes": size_table,
    "tensor-demand": from_record(COUNTS, demand_table),
    **{f"rung-{kernel.id}": partial(rung_block, kernel) for kernel in rungs()},
}
