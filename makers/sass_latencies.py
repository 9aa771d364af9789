"""Record latencies of results without a barrier: the fewest cycles that ptxas leaves in the code of the catalog.

    python makers/sass_latencies.py sm_80 sm_89 sm_90

It writes `src/gemmlab/sass/checking/recorded/sm_XX.json`. Code comes from the package's archive where it is the
compiler's own, and is compiled otherwise, which takes minutes. It fails if the code breaks a rule that does not depend
on latencies: a result of variable latency is used without a wait for its barrier, or a reuse flag is broken.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from gemmlab.precompile.shipping import shipped_jobs
from gemmlab.sass.blocks import flow_graph
from gemmlab.sass.checking.flow import meetings
from gemmlab.sass.checking.latencies import Row, row_of
from gemmlab.sass.checking.reuse import broken_reuse
from gemmlab.sass.checking.steps import steps_of
from gemmlab.sass.checking.tracker import HORIZON
from gemmlab.sass.instruction import SassFunction
from gemmlab.sass.parse import parse
from gemmlab.sass.register_accesses import UnknownAccessError
from gemmlab.toolchain.build_cuda import archived, compile_here
from gemmlab.toolchain.nvdisasm import disassemble

FOLDER = Path(__file__).parents[1] / "src/gemmlab/sass/checking/recorded"
METHOD = (
    "the least number of cycles that ptxas leaves between the two instructions, on any path, over the catalog; the "
    "hardware may need fewer"
)


def functions(arch: str) -> Iterator[tuple[str, str, SassFunction]]:
    """Yield (compiler, name of the build, function) for all code of the catalog for an architecture; that for sm_90a
    comes with sm_90.
    """
    for job in shipped_jobs(archs=[arch]):
        artifact = None if job.program.written_anew else archived(job.program)
        if artifact is None:
            artifact, _ = compile_here(job.program)
        text = artifact.texts.get("sass") or disassemble(artifact.code, job.program.kernel)
        for function in parse(text).values():
            yield artifact.compiler, f"{job.program.target} {job.program.entry}", function


def record(arch: str) -> None:
    rows: dict[Row, int] = {}
    faults: list[str] = []
    compilers: set[str] = set()
    count = asynchronous = 0
    for compiler, build, function in functions(arch):
        compilers.add(compiler)
        try:
            steps = steps_of(function)
        except UnknownAccessError:
            asynchronous += 1
            continue
        count += 1
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
                rows[row] = min(meeting.age, rows.get(row, HORIZON))
    for fault in faults[:20]:
        print(f"  {fault}")
    if faults:
        sys.exit(f"{arch}: {len(faults)} faults that do not depend on latencies")
    made = {
        "method": METHOD, "command": f"python makers/sass_latencies.py {arch}", "compilers": sorted(compilers),
        "functions": count, "asynchronous_functions_left_out": asynchronous,
        "rows": [[*row, cycles] for row, cycles in sorted(rows.items())],
    }  # fmt: skip
    head, _, body = json.dumps(made).partition('"rows": ')
    lines = body.replace("], [", "],\n[")
    (FOLDER / f"{arch}.json").write_text(f'{head}"rows": {lines}\n', encoding="utf-8")
    print(f"{arch}: {len(rows)} rows from {count} functions; {asynchronous} asynchronous ones left out")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        record(name)
