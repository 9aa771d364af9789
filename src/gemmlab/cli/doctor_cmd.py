"""`gemmlab doctor`: show the processor, libraries, GPUs and compilers that gemmlab finds on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from gemmlab.cli.answer import CsvFlag, Form, answer_form, print_csv, print_json
from gemmlab.core.words import counted

_TELLING_FEATURES = (
    "sse2", "sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_bf16",
    "avx512_fp16", "amx_tile", "asimd", "asimdhp", "asimddp", "sve", "sve2", "i8mm", "bf16",
)  # fmt: skip


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: CsvFlag = False,
    quick: Annotated[bool, typer.Option("--quick", help="Measure nothing and start no other process.")] = False,
) -> None:
    """Show the processor, its peaks, every BLAS found, GPU, compilers, cache folder and versions."""
    from gemmlab.core.tabular import csv_text

    form = answer_form(as_json=as_json, as_csv=as_csv)
    facts = examine(quick=quick)
    if form is Form.JSON:
        print_json(facts)
        return
    if form is Form.CSV:
        print_csv(csv_text([{"fact": heading, "value": text} for heading, text in rows(facts)]))
        return
    from rich.table import Table
    from rich.text import Text

    from gemmlab.cli.console import table_console

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for heading, text in rows(facts):
        table.add_row(heading, Text(text))
    table_console().print(table)


def examine(*, quick: bool = False) -> dict[str, Any]:
    """Return everything that `doctor` shows, as JSON values.

    With `quick` nothing is measured, no other process is started, and BLAS libraries are not searched.
    """
    from gemmlab.timing import inventory
    from gemmlab.timing.gpu_inventory import gpu_details
    from gemmlab.tuning.library_tuning import states

    gpu = inventory.gpus()
    gpu["details"] = gpu_details(len(gpu["devices"]), measure=not quick)
    blas, warnings = ([], []) if quick else inventory.blas_libraries()
    return {
        "cpu": inventory.processor(measure=not quick),
        "blas": blas,
        "gpu": gpu,
        "compilers": inventory.compilers(),
        "cuda_compiler": inventory.cuda_compiler(),
        "machine_code": inventory.shipped_code(),
        "gpu_code": inventory.gpu_code(),
        "cache": inventory.cache_folder(),
        "tuned": states(gpu),
        "versions": inventory.versions(),
        "warnings": warnings,
    }


def rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (heading, text) for each row of the table that shows the facts of `examine`."""
    from gemmlab.timing.gpu_inventory import gpu_text
    from gemmlab.tuning.library_tuning import state_text

    cpu = facts["cpu"]
    identity = f"family {cpu['family']} model {cpu['model']} stepping {cpu['stepping']}"
    yield "processor", f"{cpu['name']} ({cpu['vendor']} {cpu['arch']}, {identity})"
    yield "cores", _cores(cpu)
    yield "clock", _clock(cpu)
    yield "vectors", f"{cpu['lanes']} x float32, {cpu['fma_units']} FMA units ({cpu['fma_rule']})"
    yield "features", " ".join(name for name in _TELLING_FEATURES if name in cpu["features"]) or "unknown"
    for cache in cpu["caches"]:
        name = "L1d" if cache["level"] == 1 else f"L{cache['level']}"
        shared = f"shared by {cache['shared_by']}" if cache["shared_by"] > 1 else "private"
        size = f"{cache['size_bytes'] // 1024} KiB, {cache['ways']} ways, {cache['line_bytes']}-byte lines"
        yield name, f"{size}, {shared} ({cache['source']})"
    yield "computed peak", _computed(cpu)
    yield "measured peak", _measured(cpu)
    yield "register tile", _tile(cpu)
    for blas in facts["blas"]:
        details = (
            f"core type {blas.get('core_type') or 'unknown'}, threads by {blas.get('thread_runtime') or 'unknown'}"
        )
        yield blas["name"], f"{blas.get('library')} {blas.get('version')}, {details}"
    yield "GPU", _gpu(facts["gpu"])
    for detail in facts["gpu"].get("details", ()):
        yield detail["id"], gpu_text(detail)
    yield "CUDA compiler", _cuda_compiler(facts["cuda_compiler"])
    shipped = ", ".join(f"{count} for {arch}" for arch, count in facts["machine_code"].items())
    yield "machine code", f"shipped: {shipped or 'none'}; it serves where there is no CUDA compiler"
    yield "GPU code", _gpu_code(facts["gpu_code"])
    yield "compilers", ", ".join(f"{name} {version or 'none'}" for name, version in facts["compilers"].items())
    store = facts["cache"]
    yield "cache", _cache(store)
    yield "tuned", state_text(facts["tuned"])
    yield "versions", ", ".join(f"{name} {version or 'none'}" for name, version in facts["versions"].items())
    for warning in facts["warnings"]:
        yield "warning", warning


def _cores(cpu: Mapping[str, Any]) -> str:
    quota = "" if cpu["cpu_quota"] is None else f", limited to {cpu['cpu_quota']:g} CPUs' time"
    machine = ", in a virtual machine" if cpu["hypervisor"] else ""
    cores, logical = counted(cpu["physical_cores"], "core"), counted(cpu["logical_cpus"], "logical CPU")
    return f"{cores}, {logical} for this process{quota}{machine}"


def _clock(cpu: Mapping[str, Any]) -> str:
    clocks = [f"{cpu[f'{kind}_ghz']:.2f} GHz {kind}" for kind in ("nominal", "current", "max") if cpu[f"{kind}_ghz"]]
    if not _clock_is_a_counter(cpu):
        return f"{', '.join(clocks) or 'unknown'} ({cpu['clock_source']})"
    remark = (
        f"the virtual machine reports {cpu['current_ghz']:.2f} GHz, which is often the rate of its time-stamp counter"
    )
    return f"{_implied_ghz(cpu):.2f} GHz by the measured peak; {remark}" if _implied_ghz(cpu) else f"unknown; {remark}"


def _clock_is_a_counter(cpu: Mapping[str, Any]) -> bool:
    """Return whether the only known clock is the one that a hypervisor reports, often that of a time-stamp counter."""
    return bool(cpu["hypervisor"] and cpu["current_ghz"] and not cpu["max_ghz"] and not cpu["nominal_ghz"])


def _implied_ghz(cpu: Mapping[str, Any]) -> float:
    """Return the clock in GHz at which one core would reach its measured peak; 0 if the peak was not measured."""
    peaks = cpu["measured_peak_gflops"]
    return float(peaks["1"]) / (2 * cpu["fma_units"] * cpu["lanes"]) if peaks else 0.0


def _computed(cpu: Mapping[str, Any]) -> str:
    peak = cpu["computed_peak_gflops"]
    if peak is None or _clock_is_a_counter(cpu):
        a_cycle = 2 * cpu["fma_units"] * cpu["lanes"]
        return (
            f"unknown, because the clock is unknown: {a_cycle} operations a cycle and core ({cpu['fma_units']} units)"
        )
    return (
        f"{peak:.1f} GFLOP/s a core = {cpu['clock_ghz']:.2f} GHz x {cpu['fma_units']} units x {cpu['lanes']} lanes x 2"
    )


def _measured(cpu: Mapping[str, Any]) -> str:
    peaks = cpu["measured_peak_gflops"]
    if not peaks:
        return str(cpu.get("measured_peak_error", "not measured"))
    text = ", ".join(f"{value:.1f} GFLOP/s with {counted(int(threads), 'thread')}" for threads, value in peaks.items())
    return f"{text}; one core's implies {_implied_ghz(cpu):.2f} GHz if it has {cpu['fma_units']} units"


def _cache(store: Mapping[str, Any]) -> str:
    most = "without a bound" if store["limit_bytes"] is None else f"of {store['limit_bytes'] / 1e6:,.0f} MB at most"
    size = f"{store['bytes'] / 1e6:,.1f} MB {most}"
    return f"{store['path']} ({'writable' if store['writable'] else 'NOT WRITABLE'}, {size})"


def _tile(cpu: Mapping[str, Any]) -> str:
    tile = cpu.get("register_tile")
    if not tile:
        return "not measured"
    return (
        f"{tile['gflops']:.1f} GFLOP/s on one core, {tile['share_of_peak']:.1%} of the peak measured in turns with it"
    )


def _gpu(gpu: Mapping[str, Any]) -> str:
    if not gpu["devices"]:
        return f"none ({gpu.get('reason', 'no device')})"
    devices = [f"{d['name']} (sm_{d['compute_capability'].replace('.', '')}, {d['memory_bytes'] >> 20} MiB)"
               for d in gpu["devices"]]  # fmt: skip
    return f"{', '.join(devices)}; driver for CUDA {gpu['driver_cuda']}"


def _gpu_code(archive: Mapping[str, Any]) -> str:
    if not archive:
        return "none: a GPU runs code that the CUDA compiler makes (GEMMLAB_COMPILE)"
    parts = (
        f"{one['instances']} kernels for {arch} by {', '.join(one['compilers'])}, digest {one['digest'][:12]}"
        for arch, one in archive.items()
    )
    return f"{'; '.join(parts)}; a GPU runs it whatever compiler is here"


def _cuda_compiler(cuda: Mapping[str, Any]) -> str:
    archs = cuda["architectures"]
    found = f"{cuda['compiler']} for {archs[0]} to {archs[-1]}" if archs else cuda["compiler"]
    return "; ".join(filter(None, (found, cuda["reason"] or f"disassembler {cuda['disassembler']}")))


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)
