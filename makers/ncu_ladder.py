"""Record Nsight Compute's figures of every rung and of cuBLAS, and the emulator's counts beside them.

`python makers/ncu_ladder.py profile FILE` on a machine with a GPU and ncu writes them, as does
`gemmlab profile --device cuda --sizes 512,2048 --save FILE`; here FILE is written after each size, and what it has of
other sizes and contestants stays. With `--kernels` only some rungs are profiled, without cuBLAS.
`python makers/ncu_ladder.py emulate FILE` on any machine with the same cache of compiled code adds what the
emulator counts for the same launches, and names every exact count that differs; it ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from gemmlab.core.errors import GemmlabError
from gemmlab.core.hardware import usable_cpus
from gemmlab.core.records import load_record, save_record
from gemmlab.devices.select import open_device
from gemmlab.kernels.by_name import NamedKernel
from gemmlab.kernels.catalog import find_kernel, ladder
from gemmlab.observe.counting import Count, count_kernels
from gemmlab.observe.ncu import disagreements
from gemmlab.observe.profile import Profile
from gemmlab.observe.profile_reader import from_record, load_profiles
from gemmlab.observe.profile_recorder import Plan, profile_on_gpu
from gemmlab.ops.catalog import find_op


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    at_gpu, anywhere = verbs.add_parser("profile"), verbs.add_parser("emulate")
    for verb in (at_gpu, anywhere):
        verb.add_argument("file", type=Path)
        verb.add_argument("--kernels", type=lambda text: tuple(text.split(",")), default=())
    # The larger size is usual in publications; the smaller one can be emulated in seconds.
    at_gpu.add_argument("--sizes", default="512,2048")
    at_gpu.add_argument("--ncu", default="ncu")
    anywhere.add_argument("--sizes", default="512")
    anywhere.add_argument("--processes", type=int, default=len(usable_cpus()))
    options = parser.parse_args()
    try:
        if options.verb == "profile":
            return at_a_gpu(options.file, options.sizes, options.ncu, options.kernels)
        return emulate(options.file, options.sizes, options.processes, options.kernels)
    except GemmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def at_a_gpu(file: Path, sizes: str, ncu: str, ids: tuple[str, ...]) -> int:
    """Profile the ladder and cuBLAS on a GPU, or only the kernels `ids`, and write the record."""
    op = find_op("gemm")
    kernels = [NamedKernel(kernel) for kernel in (map(find_kernel, ids) if ids else ladder(op.name, "cuda"))]
    device = open_device("cuda", "warm")
    file.parent.mkdir(parents=True, exist_ok=True)
    for problem in op.parse_sizes(sizes):
        record = profile_on_gpu(Plan(op, device, [problem], kernels, baseline=not ids, ncu=ncu))
        others = load_record(file).results if file.exists() else ()
        replaced = {(one.label, one.contestant) for one in record.results}
        others = tuple(one for one in others if (one.label, one.contestant) not in replaced)
        save_record(replace(record, results=(*others, *record.results)), file)
        print(f"{len(record.results)} profiles of {problem.label}: {file}", *record.notes, sep="\n", flush=True)
    return 0


def emulate(file: Path, sizes: str, processes: int, ids: tuple[str, ...]) -> int:
    """Add the emulator's counts to the record's profiles at `sizes` of all rungs, or of the kernels `ids`; return 1 if
    an exact count differs.
    """
    read, record = load_profiles(file), load_record(file)
    facts = [dict(result.facts) for result in record.results]
    wanted = {problem.label for problem in find_op(read.op).parse_sizes(sizes)}
    mine = [(one, place) for one, place in zip(read.profiles, facts, strict=True)
            if not one.is_library and one.kernels and one.size in wanted and (not ids or one.name in ids)]  # fmt: skip
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        profiles = [one for one, _ in mine]
        counted = pool.map(emulated, profiles, [read.op] * len(mine), [read.arch] * len(mine))
        for (one, place), counts in zip(mine, counted, strict=True):
            place |= {"emulated": counts, "disagreements": compare(one, counts)}
            print(f"{one.contestant} {one.size}: {'; '.join(place['disagreements']) or 'equal'}")
    results = (replace(one, facts=changed) for one, changed in zip(record.results, facts, strict=True))
    save_record(replace(record, results=tuple(results)), file)
    return int(any(place["disagreements"] for _, place in mine))


def emulated(one: Profile, op: str, arch: str) -> dict[str, Any]:
    """Return the code's digest and the totals of the same launch on the emulator, or the reason why there are none
    (`why`).
    """
    operation, kernel = find_op(op), find_kernel(one.name)
    count = Count(
        operation, open_device(f"emulated:{arch}"), [kernel], operation.parse_sizes(one.size), seed=1,
        config=one.facts["config"],
    )  # fmt: skip
    (counted,) = from_record(count_kernels(count)).profiles
    if not counted.kernels:
        return {"code_sha256": "", "why": "; ".join(counted.notes), "totals": {}}
    totals = {**counted.metrics, **counted.counts}
    return {"code_sha256": counted.facts["code_sha256"], "why": "", "totals": totals}


def compare(one: Profile, counts: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each exact count that differs. If there are no counts, or the code is another, one sentence
    says so instead.
    """
    if counts["why"]:
        return [counts["why"]]
    profiled = one.facts["code_sha256"]
    if counts["code_sha256"] != profiled:
        return [f"other code: {counts['code_sha256'][:12]} here, {profiled[:12]} profiled"]
    return disagreements(one, counts["totals"])


if __name__ == "__main__":
    sys.exit(main())
