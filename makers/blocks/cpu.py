"""Blocks of the CPU ladder and the library call, from the records of one processor."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blocks.markdown import interval, markdown_table, plain, provenance
from blocks.records import CPU, RESULTS, from_record, load
from gemmlab.core.records import Record
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.observe.cache_record import cache_rows
from gemmlab.plots.chart import save
from gemmlab.plots.curves import bench_chart
from gemmlab.plots.ladder import climb_chart
from gemmlab.results.climb_rows import about, climb_rows, digits, peer_names, percent, short_size, times
from gemmlab.results.summary import FASTEST, Summary, summarise


def climb_table(record: Record) -> str:
    """Return README's table: each rung, library call and peer, with the ratio of its speed to the first rung's and to
    each peer's.
    """
    rows = climb_rows(record)
    peers = peer_names(rows)
    heading = ["", "size", "threads", "time, ms", "GFLOP/s", "of FMA peak", "x first rung", *(f"x {p}" for p in peers)]
    lines = [
        [
            f"`{row.name}`" if row.role != "peer" else row.name, short_size(row.size), str(row.threads),
            digits(row.time_us / 1e3), digits(row.gflops),
            percent(row.peak_share),
            "" if row.to_first is None else times(row.to_first),
            *(times(row.to_peers[peer]) if peer in row.to_peers else "" for peer in peers),
        ]
        for row in rows
    ]  # fmt: skip
    libraries = dict.fromkeys(f"{row.name}: {row.about}" for row in rows if row.role == "peer")
    notes = [f"Measured on {provenance(record)}.", *(f"{line}." for line in libraries)]
    return "\n\n".join([markdown_table(heading, lines), "  \n".join(notes)])


def gains_table(record: Record) -> str:
    """Return a table with each rung's speed, its gain over the rung that it comes after, and its idea."""
    rungs = {row.name: row for row in climb_rows(record) if row.role == "rung"}
    lines = [
        [
            f"[`{row.name}`](#{row.name})", short_size(row.size), str(row.threads), digits(row.gflops),
            percent(row.peak_share),
            "" if (last := rungs.get(find_kernel(row.name).after or "")) is None else times(row.gflops / last.gflops),
            find_kernel(row.name).idea,
        ]
        for row in rungs.values()
    ]  # fmt: skip
    heading = ["rung", "size", "threads", "GFLOP/s", "of FMA peak", "x rung before", "why"]
    return "\n\n".join([markdown_table(heading, lines, ["why"]), f"Measured on {provenance(record)}."])


def library_table(record: Record) -> str:
    """Return the charts of `gemmlab.gemm`, and a table of its sizes: speed, share of the peak, and the ratio of its
    speed to the fastest peer's and to each peer's.
    """
    summary = summarise(record)
    rows = [row for row in summary.rows if row.role == "library call"]
    peers = list(dict.fromkeys(peer for row in rows for peer in row.ratios if peer != FASTEST))
    heading = ["m x n x k", "threads", "GFLOP/s", "of FMA peak", "x fastest peer (95 %)", "fastest"]
    lines = [
        [
            row.label, str(row.threads), digits(row.gflops),
            percent(row.peak_share),
            interval(row.ratios.get(FASTEST)), plain(row.fastest or ""),
            *(f"{row.ratios[peer].value:.3f}" if peer in row.ratios else "" for peer in peers),
        ]
        for row in sorted(rows, key=lambda row: row.threads)
    ]  # fmt: skip
    counts = sorted({row.threads for row in rows})
    pictures = "\n".join(
        f"![GFLOP/s by size, threads: {n}](../benchmarks/results/{CPU}/{curve_name(n)})" for n in counts
    )
    known = {result.contestant: about(result.facts) for result in record.results if result.facts.get("role") == "peer"}
    notes = [
        *_means(summary),
        f"Measured on {provenance(record)}.",
        *(f"{plain(name)}: {text}." for name, text in known.items()),
    ]
    table = markdown_table([*heading, *(f"x {plain(peer)}" for peer in peers)], lines, ["fastest"])
    return "\n\n".join([pictures, table, "  \n".join(notes)])


def library_means(record: Record) -> str:
    """Return, for README, the geometric mean of the ratios of `gemmlab.gemm`'s speed to the fastest peer's, for each
    number of threads.
    """
    return "  \n".join([*_means(summarise(record)), f"Measured on {provenance(record)}."])


def _means(summary: Summary) -> list[str]:
    ours = {row.contestant for row in summary.rows if row.role == "library call"}
    return [
        f"Geometric mean over {mean.problems} sizes, threads {mean.threads}: {interval(mean.ratio)} x the fastest peer."
        for mean in summary.means
        if mean.peer == FASTEST and mean.contestant in ours
    ]


def cache_table(record: Record) -> str:
    """Return a table of each rung's simulated misses for 1000 multiply-adds: one column a size, L1, L2 and TLB in one
    cell.
    """
    rows = cache_rows(record)
    sizes = list(dict.fromkeys(row.size for row in rows))
    heading = ["rung", "bytes used", *(f"{short_size(size)}: L1, L2, TLB" for size in sizes)]
    lines = []
    for name in dict.fromkeys(row.kernel for row in rows):
        mine = {row.size: row for row in rows if row.kernel == name}
        misses = ((row.l1_misses, row.l2_misses, row.tlb_misses) for row in (mine[size] for size in sizes))
        lines.append(
            [
                f"[`{name}`](#{name})", f"{mine[sizes[-1]].accessed_bytes:.2f}",
                *(", ".join(f"{count:.2f}" for count in counts) for counts in misses),
            ]
        )  # fmt: skip
    note = f"Misses per 1000 multiply-adds, bytes per multiply-add. {described(record)}"
    return "\n\n".join([markdown_table(heading, lines), note])


def packing_table(record: Record) -> str:
    """Return a table of packing's share of the bytes loaded and stored, of L2 misses and of time."""
    rows = cache_rows(record)
    names = [row.kernel for row in rows]
    lines = [
        [
            f"[`{row.kernel}`](#{row.kernel})", short_size(row.size),
            *("" if share is None else f"{share:.1%}" for share in (row.packing_bytes, row.packing_l2_misses)),
            "none called" if row.packing_time is None else f"{row.packing_time:.1%}",
        ]
        for row in sorted(rows, key=lambda row: names.index(row.kernel))
    ]  # fmt: skip
    heading = ["rung", "size", "of bytes used", "of L2 misses", "of time, in packing functions"]
    note = f"{described(record)} The times were measured on {provenance(record)}, one thread, caches warm."
    return "\n\n".join([markdown_table(heading, lines, ["size"]), note])


def described(record: Record) -> str:
    """Return a sentence with the sizes and ways of the simulated caches."""
    caches = record.device["caches"]
    l1, l2, tlb = (caches[name] for name in ("l1", "l2", "tlb"))
    return (
        f"L1 {l1['size'] >> 10} KiB with {l1['ways']} ways, L2 {l2['size'] >> 10} KiB with {l2['ways']}, "
        f"TLB {tlb['size'] // tlb['line']} pages of {tlb['line'] >> 10} KiB with {tlb['ways']}."
    )


def sources_table() -> str:
    """Return a table of the CPU rungs and the sources of their techniques."""
    lines = [[f"[`{kernel.id}`](#{kernel.id})", kernel.source] for kernel in ladder("gemm", "cpu")]
    return markdown_table(["rung", "from"], lines, ["from"])


def curve_name(threads: int) -> str:
    return f"gemm-threads-{threads}.svg"


def draw() -> None:
    """Draw the charts of the records into the records' folder."""
    if (climb := load(f"{CPU}/climb.json")) is not None:
        save(climb_chart(climb), RESULTS / CPU / "climb.svg")
    if (bench := load(f"{CPU}/gemm.json")) is not None:
        for threads in {result.threads for result in bench.results}:
            save(bench_chart(bench, threads), RESULTS / CPU / curve_name(threads))


BLOCKS: Mapping[str, Callable[[], str]] = {
    "climb": from_record(f"{CPU}/climb.json", climb_table),
    "sources": sources_table,
    "gains": from_record(f"{CPU}/climb.json", gains_table),
    "library": from_record(f"{CPU}/gemm.json", library_table),
    "library-means": from_record(f"{CPU}/gemm.json", library_means),
    "cache": from_record(f"{CPU}/cache.json", cache_table),
    "packing": from_record(f"{CPU}/packing.json", packing_table),
}
