"""Blocks of the reduction ladder: times on a GPU and on a CPU beside the libraries, and what the emulator counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from blocks.gpu_times import measured
from blocks.markdown import interval, markdown_table
from blocks.records import CPU, from_record
from gemmlab.core.records import Record, Result
from gemmlab.kernels.catalog import ladder
from gemmlab.kernels.kernel import Kernel
from gemmlab.ops.reduce import ReduceOp, ReduceProblem
from gemmlab.results.climb_rows import digits, percent, times
from gemmlab.results.summary import FASTEST, Row, Summary, summarise

TOP = str(1 << 25)
"""The number of elements at which rungs are compared, the same as in the article."""
OURS = "reduce_peak"


def ladder_table(record: Record) -> str:
    """Return a table of each rung and library at `TOP` elements: time, bytes a second, share of the read rate, gain
    over the rung before, ratio of its speed to the fastest library's.
    """
    rows = {row.contestant: row for row in summarise(record).rows if row.label == TOP}
    lines = [
        [
            f"[`{kernel.id}`](#{kernel.id})", *_speed(row),
            "" if (lower := rows.get(f"kernel:{kernel.after}")) is None else times(lower.median_us / row.median_us),
            interval(row.ratios.get(FASTEST)),
        ]
        for kernel in ladder("reduce", "cuda")
        if (row := rows.get(f"kernel:{kernel.id}")) is not None
    ]  # fmt: skip
    lines += [[row.contestant, *_speed(row), "", ""] for row in rows.values() if row.role == "peer"]
    heading = ["rung", "ms", "GB/s", "of the read rate", "x rung before", "x fastest library (95 %)"]
    return "\n\n".join([markdown_table(heading, lines), f"{_power(TOP)} elements. {measured(record)}"])


def counter_table(record: Record) -> str:
    """Return a table of each rung's counts on the emulator, all launches together, and of the length of its longest
    chain of additions, on which its error bound depends.
    """
    found = {str(result.facts["name"]): result for result in record.results if "facts" in result.facts}
    lines = [_counts(kernel, found[kernel.id]) for kernel in ladder("reduce", "cuda") if kernel.id in found]
    heading = ["rung", "instructions", "barriers", "shared loads", "wavefronts", "shuffles", "global loads",
               "additions in a row"]  # fmt: skip
    sizes = ", ".join(dict.fromkeys(_power(result.label) for result in found.values()))
    note = f"{sizes} elements, counted on {record.device.get('id')}."
    return "\n\n".join([markdown_table(heading, lines), note])


def _counts(kernel: Kernel, result: Result) -> list[str]:
    seen, opcodes = result.facts["facts"], result.facts["opcodes"]
    scalars = ReduceOp().scalars(ReduceProblem(int(result.problem["n"])))
    shuffles = sum(count for name, count in opcodes.items() if name.partition(".")[0] == "SHFL")
    figures = (seen["instructions"], seen["barriers"], seen["shared_load_requests"], seen["shared_load_wavefronts"],
               shuffles, seen["global_load_requests"])  # fmt: skip
    roundings = kernel.roundings(kernel.instantiate(result.facts["config"], scalars), scalars)
    return [f"[`{kernel.id}`](#{kernel.id})", *(f"{value:,.0f}" for value in figures), str(roundings)]


def by_length(record: Record) -> str:
    """Return a table of the last rung's times at every length, with the ratio of its speed to each library's."""
    return _against_libraries(record, f"kernel:{OURS}")


def library_call(record: Record) -> str:
    """Return a table of the times of `gemmlab.sum` of NumPy arrays, at every length and number of threads, with the
    ratio of its speed to each library's.
    """
    return _against_libraries(record, "gemmlab")


def along_axes(record: Record) -> str:
    """Return a table of the times of `gemmlab.sum` along the middle axis of arrays on a GPU, with the ratio of its
    speed to each library's.
    """
    return _against_libraries(record, "gemmlab", ("array", "arrays"))


def _against_libraries(record: Record, contestant: str, nouns: tuple[str, str] = ("elements", "lengths")) -> str:
    summary = summarise(record)
    mine = sorted((row for row in summary.rows if row.contestant == contestant), key=_place)
    peers = list(dict.fromkeys(peer for row in mine for peer in row.ratios if peer != FASTEST))
    threaded = len({row.threads for row in mine}) > 1
    lines = [
        [
            _power(row.label), *([str(row.threads)] if threaded else []), *_speed(row),
            *(interval(row.ratios.get(peer)) for peer in peers),
        ]
        for row in mine
    ]  # fmt: skip
    heading = [nouns[0], *(["threads"] if threaded else []), "ms", "GB/s", "of the read rate"]
    table = markdown_table([*heading, *(f"x {peer} (95 %)" for peer in peers)], lines)
    return "\n\n".join([table, "  \n".join([*_means(summary, contestant, nouns[1]), measured(record)])])


def _place(row: Row) -> tuple[int, int]:
    """Return a key that sorts rows by threads, then by length; arrays of several extents stay in the record's order."""
    return row.threads, int(row.label) if row.label.isdecimal() else 0


def _means(summary: Summary, contestant: str, noun: str) -> list[str]:
    return [
        f"Geometric mean over {mean.problems} {noun}{'' if mean.threads == 1 else f', {mean.threads} threads'}: "
        f"{interval(mean.ratio)} x the fastest library."
        for mean in summary.means
        if mean.peer == FASTEST and mean.contestant == contestant
    ]


def _speed(row: Row) -> Sequence[str]:
    return (
        digits(row.median_us / 1e3), digits(row.gbs) if row.verified is not False else "wrong",
        "" if row.peak_share is None else percent(row.peak_share),
    )  # fmt: skip


def _power(label: str) -> str:
    """Return the label of a length: a power of two such as `"1024"` as 2^10, other lengths with commas, and several
    extents such as `4096x4096x1` unchanged.
    """
    if "x" in label:
        return label
    n = int(label)
    return f"2^{n.bit_length() - 1}" if n and not n & (n - 1) else f"{n:,}"


BLOCKS: Mapping[str, Callable[[], str]] = {
    "reduce-ladder": from_record("h200/reduce.json", ladder_table),
    "reduce-counts": from_record("emulated/reduce.json", counter_table),
    "reduce-lengths": from_record("h200/reduce.json", by_length),
    "reduce-axes": from_record("h200/reduce-axes.json", along_axes),
    "reduce-cpu": from_record(f"{CPU}/reduce.json", library_call),
}
