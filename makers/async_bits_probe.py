"""Record the bits that Hopper's asynchronous instructions compute on a GPU, except those in `wgmma_probe.py`.

    python makers/async_bits_probe.py --out tests/data/async_bits [--device cuda]

Files: `wgmma.npz` (signs, A from registers, and e5m2 times e4m3 with FP16 sums), `reductions.npz` (bulk reductions,
those of tensor maps, `red.async`), `boxes.npz` (random tensor copies), `swaps.npz` (lanes that update cells of the same
banks), `odd.npz` (reductions that PTX does not name), `ends.npz` (reductions of tensors that end inside 16 bytes),
`vectors.npz` (atomic operations on vectors), `record.json`. Each group runs in processes of its own, and each array is
stored at once: a kernel that breaks takes the GPU context with it. Its array is empty, and another process does the
rest. Arrays that the files have are not recorded again.
`tests/emulated/asynchronous/test_async_bits.py` compares the emulator with the record.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests/emulated" / name) for name in ("wgmma", "conformance", "asynchronous")]

from box_cases import BoxCopy, box_copies  # noqa: E402 - they lie with the tests
from one_cubin import one_cubin  # noqa: E402
from reduction_cases import odd_reductions, reductions  # noqa: E402
from reduction_ends import ended_reductions  # noqa: E402
from swap_cases import OPERATIONS, PLACES, swaps  # noqa: E402
from vector_cases import vector_atomics  # noqa: E402
from wgmma_record import ARCH, more_jobs, more_source  # noqa: E402

from gemmlab.core.errors import GemmlabError  # noqa: E402
from recorded_device import write_device  # noqa: E402

SECONDS = 60
"""Limit of one process on a GPU."""
PROCESSES = 4
"""Processes of one group at a time on a GPU."""
MOST_BREAKS = 12
"""Number of processes of a group that may fail before the rest of the group is given up."""
Bits = npt.NDArray[np.unsignedinteger]
Job = Callable[[str], Bits]


def box(device: str, case: BoxCopy) -> Bits:
    """Return the words of a tensor copy. For a load on a GPU, the kernel itself counts the bytes that arrive; otherwise
    it is passed their number.
    """
    known = case.way == "store" or not device.startswith("cuda")
    return case.words(device, case.tiled().nbytes if known else 0)


def wgmma_code(device: str) -> bytes:
    """Return a cubin with all kernels of wgmma for a GPU; empty for the emulator, which would read all of it for each
    kernel.
    """
    return one_cubin(more_source(), "nothing", device, ARCH) if device.startswith("cuda") else b""


def groups(device: str) -> Mapping[str, Mapping[str, Job]]:
    """Return the functions that record, by group and array."""
    return {
        "wgmma": more_jobs(partial(wgmma_code, device)),
        "reductions": {case.name: case.bits for case in reductions()},
        "boxes": {case.name: partial(box, case=case) for case in box_copies()},
        "swaps": {
            f"{operation}_{place}": partial(swaps, operation=operation, place=place)
            for operation in OPERATIONS
            for place in PLACES
        },
        "odd": {case.name: case.bits for case in odd_reductions()},
        "ends": {case.name: case.bits for case in ended_reductions()},
        "vectors": {case.name: case.bits for case in vector_atomics()},
    }


def record_part(group: str, parts: Path, options: Any) -> None:
    """Record the arrays that no file has. Raises `GemmlabError` of the first that breaks."""
    part, count = map(int, options.part.split("/"))
    for name, job in list(groups(options.device)[group].items())[:: options.every][part::count]:
        path = parts / f"{name}.npy"
        if path.exists():
            continue
        # It stays empty if the process ends here.
        np.save(path, np.zeros(0, np.uint32))
        np.save(path, job(options.device))


def record_share(group: str, part: str, options: Any) -> None:
    """Record a share of a group in one process after the other, until one ends with all of it."""
    command = [sys.executable, __file__, "--out", str(options.out), "--device", options.device]
    command += ["--every", str(options.every), "--group", group, "--part", part]
    limit = SECONDS if options.device.startswith("cuda") else None
    for _ in range(MOST_BREAKS):
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit)
            words = done.stderr.strip().splitlines()[-1:]
            if not done.returncode:
                break
        except subprocess.TimeoutExpired:
            words = [f"ended after {limit} s"]
        print(f"{group} {part}: {words}", flush=True)


def recorded(file: Path) -> dict[str, Bits]:
    """Return the arrays of a file by name; none if there is no file."""
    if not file.exists():
        return {}
    with np.load(file) as arrays:
        return dict(arrays)


def record_group(group: str, options: Any) -> None:
    """Record the arrays of a group that its file lacks, and join all of them in that file."""
    parts, start, file = options.out / "parts" / group, time.perf_counter(), options.out / f"{group}.npz"
    known = recorded(file)
    if groups(options.device)[group].keys() <= known.keys():
        print(f"{group}: nothing is missing", flush=True)
        return
    parts.mkdir(parents=True, exist_ok=True)
    for name, array in known.items():
        np.save(parts / f"{name}.npy", array)
    count = PROCESSES if options.device.startswith("cuda") else 1
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda part: record_share(group, f"{part}/{count}", options), range(count)))
    found = {path.stem: np.load(path) for path in sorted(parts.glob("*.npy"))}
    np.savez_compressed(file, **found)
    empty = [name for name, array in found.items() if not array.size]
    print(f"{group}: {len(found)} arrays, {time.perf_counter() - start:.1f} s, without results: {empty}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1, help="record one array of so many")
    parser.add_argument("--group", help="record only this group, in this process")
    parser.add_argument("--part", default="0/1", help="with --group: the share of its arrays, such as 2/4")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.group:
        try:
            record_part(options.group, options.out / "parts" / options.group, options)
        except GemmlabError as error:
            sys.exit(str(error).replace("\n", " "))
        return 0
    for group in groups(options.device):
        record_group(group, options)
    write_device(options.out, options.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
