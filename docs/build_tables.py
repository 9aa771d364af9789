"""Fill the generated parts of README.md and docs/*.md from the records in benchmarks/results.

`python docs/build_tables.py` rewrites them and redraws the charts; `--check` only says which are stale, and ends with
1 then.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from gemmlab.core.records import Record, load_record
from gemmlab.core.stats import Ratio
from gemmlab.kernels.catalog import ladder
from gemmlab.measure.cache_record import cache_rows
from gemmlab.measure.climb_rows import ClimbRow, about, climb_rows, digits, peer_names, percent, short_size, times
from gemmlab.measure.summary import FASTEST, summarise
from gemmlab.plots.chart import save
from gemmlab.plots.curves import bench_chart
from gemmlab.plots.ladder import climb_chart

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "cpu"
NO_RECORD = "*Not measured yet: there is no record in benchmarks/results/cpu.*"
BLOCK = re.compile(r"(<!-- begin ([a-z-]+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def markdown_table(heading: list[str], rows: list[list[str]], texts: Collection[str] = ()) -> str:
    """A table of numbers, but for the first column and those headed as in `texts`."""
    rule = ["---" if index == 0 or name in texts else "---:" for index, name in enumerate(heading)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (heading, rule, *rows))


def plain(contestant: str) -> str:
    return contestant.removesuffix(":best")


def provenance(record: Record) -> str:
    """Where and when a record was made."""
    seen = record.environment
    return (
        f"{seen.get('cpu', 'an unknown processor')}, {seen.get('cpus', '?')} cores, "
        f"{str(seen.get('time_utc', ''))[:10]}, gemmlab {seen.get('gemmlab', '?')}"
    )


def climb_table(record: Record) -> str:
    """The table of README: every row with its ratio to the first rung and to each peer."""
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
    """Each rung's gain over the one before, and its idea."""
    rungs = [row for row in climb_rows(record) if row.role == "rung"]
    before: list[ClimbRow | None] = [None, *rungs[:-1]]
    lines = [
        [
            f"[`{row.name}`](#{row.name})", short_size(row.size), str(row.threads), digits(row.gflops),
            percent(row.peak_share),
            "" if last is None else times(row.gflops / last.gflops), row.idea,
        ]
        for row, last in zip(rungs, before, strict=True)
    ]  # fmt: skip
    heading = ["rung", "size", "threads", "GFLOP/s", "of FMA peak", "x rung before", "why"]
    return "\n\n".join([markdown_table(heading, lines, ["why"]), f"Measured on {provenance(record)}."])


def library_table(record: Record) -> str:
    """Each size of `gemmlab.gemm`: speed, share of peak, ratio to the fastest peer and to each."""
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
    means = [
        f"Geometric mean over {mean.problems} sizes, threads {mean.threads}: {interval(mean.ratio)} x the fastest peer."
        for mean in summary.means
        if mean.peer == FASTEST and mean.contestant in {row.contestant for row in rows}
    ]
    counts = sorted({row.threads for row in rows})
    pictures = "\n".join(f"![GFLOP/s by size, threads: {n}](benchmarks/results/cpu/{curve_name(n)})" for n in counts)
    known = {result.contestant: about(result.facts) for result in record.results if result.facts.get("role") == "peer"}
    notes = [*means, f"Measured on {provenance(record)}.", *(f"{plain(name)}: {text}." for name, text in known.items())]
    table = markdown_table([*heading, *(f"x {plain(peer)}" for peer in peers)], lines, ["fastest"])
    return "\n\n".join([pictures, table, "  \n".join(notes)])


def cache_table(record: Record) -> str:
    """Misses of each rung at each size: L1, L2 and TLB in one cell."""
    rows = cache_rows(record)
    sizes = list(dict.fromkeys(row.size for row in rows))
    heading = ["rung", "bytes used", *(f"{short_size(size)}: L1, L2, TLB" for size in sizes)]
    lines = []
    for name in dict.fromkeys(row.kernel for row in rows):
        mine = {row.size: row for row in rows if row.kernel == name}
        misses = ((row.l1_misses, row.l2_misses, row.tlb_misses) for row in (mine[size] for size in sizes))
        lines.append(
            [
                f"[`{name}`](#{name})", f"{mine[sizes[-1]].touched:.2f}",
                *(", ".join(f"{count:.2f}" for count in counts) for counts in misses),
            ]
        )  # fmt: skip
    note = f"Misses for 1000 multiply-adds, bytes for one. {described(record)}"
    return "\n\n".join([markdown_table(heading, lines), note])


def packing_table(record: Record) -> str:
    """The share of packing: of bytes loaded and stored, of L2 misses, of time."""
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
    """The simulated caches."""
    caches = record.device["caches"]
    l1, l2, tlb = (caches[name] for name in ("l1", "l2", "tlb"))
    return (
        f"L1 {l1['size'] >> 10} KiB with {l1['ways']} ways, L2 {l2['size'] >> 10} KiB with {l2['ways']}, "
        f"TLB {tlb['size'] // tlb['line']} pages of {tlb['line'] >> 10} KiB with {tlb['ways']}."
    )


def sources_table() -> str:
    """Where the technique of each rung comes from."""
    lines = [[f"[`{kernel.id}`](#{kernel.id})", kernel.source] for kernel in ladder("gemm", "cpu")]
    return markdown_table(["rung", "from"], lines, ["from"])


def curve_name(threads: int) -> str:
    return f"gemm-threads-{threads}.svg"


def draw() -> None:
    """The charts of the records, beside them."""
    if (RESULTS / "climb.json").exists():
        save(climb_chart(load_record(RESULTS / "climb.json")), RESULTS / "climb.svg", RESULTS / "climb.png")
    if (RESULTS / "gemm.json").exists():
        record = load_record(RESULTS / "gemm.json")
        for threads in {result.threads for result in record.results}:
            save(bench_chart(record, threads), RESULTS / curve_name(threads))


def interval(ratio: Ratio | None) -> str:
    return "" if ratio is None else f"{ratio.value:.3f} ({ratio.low:.3f}-{ratio.high:.3f})"


def from_record(name: str, table: Callable[[Record], str]) -> Callable[[], str]:
    """The block's text, or a sentence where there is no record yet."""
    path = RESULTS / name
    return lambda: table(load_record(path)) if path.exists() else NO_RECORD


BLOCKS: Mapping[str, Callable[[], str]] = {
    "climb": from_record("climb.json", climb_table),
    "sources": sources_table,
    "gains": from_record("climb.json", gains_table),
    "library": from_record("gemm.json", library_table),
    "cache": from_record("cache.json", cache_table),
    "packing": from_record("packing.json", packing_table),
}


def filled(text: str) -> str:
    """`text` with every generated block made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{BLOCKS[found[2]]()}\n\n{found[3]}", text)


def main(arguments: list[str]) -> int:
    if "--check" not in arguments:
        draw()
    stale = False
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = path.read_text(encoding="utf-8")
        fresh = filled(text)
        if fresh != text:
            stale = True
            print(f"{path.relative_to(ROOT)}: {'stale' if '--check' in arguments else 'rewritten'}")
            if "--check" not in arguments:
                path.write_text(fresh, encoding="utf-8")
    return int(stale and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
