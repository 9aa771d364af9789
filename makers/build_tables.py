"""Fill the generated parts of README.md and docs/*.md from the records in benchmarks/results.

`python makers/build_tables.py` rewrites them and redraws the charts. With `--check` it only prints the pages that are
stale, and its exit code is then 1.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping

from blocks import (
    api,
    archive,
    beside_triton,
    changes,
    choices_printed,
    claims_page,
    copy_helpers,
    cpu,
    cpu_sizes,
    dask,
    diffs,
    dram_roofline,
    exercises,
    float32,
    fuzzed,
    gpu_bounds,
    gpu_code,
    gpu_counts,
    gpu_rungs,
    gpu_times,
    many_cores,
    many_gpus,
    model,
    other_cpus,
    outside,
    overhead,
    packs,
    parts,
    peak_loops,
    pictures,
    profiles,
    reductions,
    regret,
    sanitizer,
    sass_code,
    sass_on_gpu_runs,
    searches,
    shapes,
    source_test,
    suite,
    suite_costs,
    tensor,
    tensor_code,
    tensor_profiles,
    tf32_rows,
)
from blocks.records import ROOT

BLOCK = re.compile(r"(<!-- begin ([a-z0-9_-]+) -->\n).*?(<!-- end \2 -->)", re.DOTALL)
MODULES = (
    cpu, cpu_sizes, other_cpus, packs, dask, many_cores, gpu_times, gpu_counts, gpu_bounds, gpu_rungs, gpu_code,
    profiles, claims_page, reductions, tensor, tensor_code, tf32_rows, source_test, tensor_profiles, parts, diffs,
    pictures, model, changes, overhead, api, float32, beside_triton, fuzzed, suite, shapes, suite_costs, regret,
    searches, sanitizer, dram_roofline, sass_code, sass_on_gpu_runs, peak_loops, many_gpus, exercises, copy_helpers,
    outside, choices_printed, archive,
)  # fmt: skip
BLOCKS: Mapping[str, Callable[[], str]] = {name: block for part in MODULES for name, block in part.BLOCKS.items()}


def filled(text: str) -> str:
    """Return `text` with every generated block made anew."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{BLOCKS[found[2]]()}\n\n{found[3]}", text)


def main(arguments: list[str]) -> int:
    if "--check" not in arguments:
        cpu.draw()
        gpu_times.draw()
        shapes.draw()
        pictures.draw()
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
