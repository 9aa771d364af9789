"""Record latencies of results without a barrier: the fewest cycles that ptxas leaves in the code of the catalog, and in
that of `makers/latency_kernels`, which have what matrix products and sums lack: textures, calls, 64-bit integers.

    python makers/sass_latencies.py sm_80 sm_89 sm_90 [--more]

Rows of sm_90 that a GPU showed (`makers/sass_latency_probe.py`) are added as `measured`. With `--more` the rows of the
catalog stay as they are recorded, and only `makers/latency_kernels` are compiled.
It writes `src/gemmlab/sass/checking/recorded/sm_XX.json`. Code comes from the package's archive where it is the
compiler's own, and is compiled otherwise, which takes minutes. It fails if the code breaks a rule that does not depend
on latencies: a result of variable latency is used without a wait for its barrier, or a reuse flag is broken.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from gemmlab.core.program import Program
from gemmlab.precompile.shipping import shipped_jobs
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.checking.flow import meetings
from gemmlab.sass.checking.latencies import Row, latencies, row_of
from gemmlab.sass.checking.reuse import broken_reuse
from gemmlab.sass.checking.steps import steps_of
from gemmlab.sass.checking.tracker import HORIZON
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse
from gemmlab.sass.register_accesses import UnknownAccessError
from gemmlab.toolchain.build_cuda import archived, compile_here
from gemmlab.toolchain.compilation import compile_cubin
from gemmlab.toolchain.nvdisasm import disassemble

FOLDER = Path(__file__).parents[1] / "src/gemmlab/sass/checking/recorded"
MORE = Path(__file__).parent / "latency_kernels"
PROBED = Path(__file__).parents[1] / "benchmarks/results/h200/sass-latencies.json"
METHOD = (
    "the least number of cycles that ptxas leaves between the two instructions, on any path, over the catalog and the "
    "kernels of makers/latency_kernels; the hardware may need fewer"
)


Named = tuple[str, str, SassFunction]
"""(compiler, name of the build, function)."""


def of_catalog(arch: str) -> Iterator[Named]:
    """Yield all code of the catalog for an architecture; that for sm_90a comes with sm_90."""
    for job in shipped_jobs(archs=[arch]):
        artifact = None if job.program.written_anew else archived(job.program)
        if artifact is None:
            artifact, _ = compile_here(job.program)
        text = artifact.texts.get("sass") or disassemble(artifact.code, job.program.kernel)
        for function in parse(text).values():
            yield artifact.compiler, f"{job.program.target} {job.program.entry}", function


def of_more(arch: str) -> Iterator[Named]:
    """Yield the code of `makers/latency_kernels` for an architecture."""
    for file in sorted(MORE.glob("*.cu")):
        source = file.read_text("utf-8")
        # The cubin has all kernels of the file; the compiler wants the name of one.
        first = re.findall(r"void (\w+)\(", source[source.index("__global__") :])[0]
        artifact = compile_cubin(Program(file.stem, "cuda", arch, first, "", partial(str, source)))
        for function in parse(disassemble(artifact.code, file.name)).values():
            yield artifact.compiler, f"{arch} {file.stem}/{function.name}", function


@dataclass
class Found:
    """The least distances in some machine code: rows, the compilers that made it, and how many functions were read."""

    rows: dict[Row, int] = field(default_factory=dict)
    compilers: set[str] = field(default_factory=set)
    count: int = 0
    asynchronous: int = 0
    """Functions that are left out, since they have asynchronous instructions."""


def found_in(code: Iterator[Named]) -> Found:
    """Return what code shows. Exit if it breaks a rule that does not depend on latencies."""
    found = Found()
    faults: list[str] = []
    for compiler, build, function in code:
        found.compilers.add(compiler)
        try:
            steps = steps_of(function)
        except UnknownAccessError:
            found.asynchronous += 1
            continue
        found.count += 1
        graph = flow_graph(function)
        faults += [
            f"{build}: {flagged.text} / {later.text}: reuse of R{r}" for flagged, later, r in broken_reuse(graph)
        ]
        for meeting in meetings(graph, steps):
            producer, consumer = steps[meeting.producer], steps[meeting.consumer]
            if meeting.age is None:
                faults.append(f"{build}: {producer.instruction.text} / {consumer.instruction.text}: no barrier")
            elif meeting.age < HORIZON:
                row = row_of(meeting, producer, consumer)
                found.rows[row] = min(meeting.age, found.rows.get(row, HORIZON))
    for fault in faults[:20]:
        print(f"  {fault}")
    if faults:
        sys.exit(f"{len(faults)} faults that do not depend on latencies")
    return found


def measured(arch: str) -> list[list[str | int]]:
    """Return the rows at which a GPU of this architecture gave other results with a cycle less."""
    probed = json.loads(PROBED.read_text("utf-8"))
    found = [one for one in probed["rows"] if one["changed_at"] is not None] if probed["arch"] == arch else []
    return [[*one["row"], one["changed_at"] + 1] for one in found]


def record(arch: str, *, more: bool) -> None:
    file = FOLDER / f"{arch}.json"
    before = json.loads(file.read_text("utf-8")) if more else {}
    catalog = Found() if more else found_in(of_catalog(arch))
    others = found_in(of_more(arch))
    rows = dict(latencies(arch).rows) if more else catalog.rows
    for row, cycles in others.rows.items():
        rows[row] = min(cycles, rows.get(row, HORIZON))
    made = {
        "method": METHOD, "command": f"python makers/sass_latencies.py {arch}{' --more' if more else ''}",
        "compilers": sorted(catalog.compilers | others.compilers | set(before.get("compilers", ()))),
        "functions": before.get("functions", catalog.count), "more_functions": others.count,
        "asynchronous_functions_left_out": before.get("asynchronous_functions_left_out", catalog.asynchronous),
        "measured": measured(arch), "rows": [[*row, cycles] for row, cycles in sorted(rows.items())],
    }  # fmt: skip
    head, _, body = json.dumps(made).partition('"rows": ')
    lines = body.replace("], [", "],\n[")
    file.write_text(f'{head}"rows": {lines}\n', encoding="utf-8")
    print(f"{arch}: {len(rows)} rows, {made['functions']} functions of the catalog, {others.count} others")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        if name != "--more":
            record(name, more="--more" in sys.argv)
