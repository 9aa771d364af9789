"""Time products in pieces on a GPU, beside the limit that the link and the kernel set.

`python makers/stream_rate.py FILE --sizes 27648 --memory-mib 1024 --kinds pinned,mapped` on a machine with a GPU prints
a line for each size and kind of arrays, and writes a record. The limit is the longer of two times: the whole product's
by the same kernel with all operands on the GPU, and that of the bytes of the busier direction, at the measured rate of
pinned copies in both directions at once. The result is compared with that of the whole product, bit by bit.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import gemmlab
from gemmlab.core.environment import describe_environment
from gemmlab.devices.cuda import CudaDevice
from gemmlab.devices.cuda_driver import Driver, open_driver
from gemmlab.dispatch.batches import ONE
from gemmlab.dispatch.call import Call
from gemmlab.dispatch.cuda_gemm import CudaGemm, gemm_on
from gemmlab.dispatch.storage import Stored
from gemmlab.ops.gemm_problem import GemmProblem

Float32Array = npt.NDArray[np.float32]
SCHEMA = "gemmlab.stream_rate/1"
_COPY_BYTES, _COPIES = 1 << 30, 8
_ROWS = 1024
"""The number of random rows that are made; further rows are these times a power of two."""


@contextmanager
def pinned_arrays(driver: Driver, *shapes: tuple[int, int]) -> Iterator[list[Float32Array]]:
    """Yield matrices in pinned memory, uninitialised; it is freed with the block."""
    addresses, arrays = list[int](), list[Float32Array]()
    try:
        for shape in shapes:
            nbytes = 4 * shape[0] * shape[1]
            addresses.append(int(driver("cuMemHostAlloc", nbytes, int(driver.module.CU_MEMHOSTALLOC_PORTABLE))))
            memory: Any = (ctypes.c_uint8 * nbytes).from_address(addresses[-1])
            arrays.append(np.frombuffer(memory, np.float32).reshape(shape))
        yield arrays
    finally:
        for address in addresses:
            driver("cuMemFreeHost", address)


def fill(x: Float32Array, seed: int) -> None:
    """Fill a matrix with random numbers from -1/2 to 1/2; in two of three blocks of `_ROWS` rows, with halves or
    quarters of such numbers.
    """
    rng = np.random.default_rng(seed)
    block = rng.random((min(_ROWS, len(x)), x.shape[1]), np.float32) - np.float32(0.5)
    for number, start in enumerate(range(0, len(x), _ROWS)):
        part = x[start : start + _ROWS]
        np.multiply(block[: len(part)], np.float32(2.0 ** -(number % 3)), out=part)


def link_rates(device: CudaDevice) -> dict[str, float]:
    """Return the rates of pinned copies in 10^9 bytes a second: `in`, `out`, and `both`, which is the rate of each
    direction if both are used at once.
    """
    driver = open_driver()
    flags = int(driver.module.CUstream_flags.CU_STREAM_NON_BLOCKING)
    streams = [driver("cuStreamCreate", flags) for _ in range(2)]
    buffers = [device.allocate(_COPY_BYTES) for _ in range(2)]
    shape = (1024, _COPY_BYTES // 4096)
    try:
        with pinned_arrays(driver, shape, shape) as hosts:
            for host in hosts:
                host.fill(1.0)

            def seconds(ways: Sequence[int]) -> float:
                begun = time.perf_counter()
                for _ in range(_COPIES):
                    if 0 in ways:
                        driver("cuMemcpyHtoDAsync", buffers[0].address, hosts[0].ctypes.data, _COPY_BYTES, streams[0])
                    if 1 in ways:
                        driver("cuMemcpyDtoHAsync", hosts[1].ctypes.data, buffers[1].address, _COPY_BYTES, streams[1])
                for stream in streams:
                    driver("cuStreamSynchronize", stream)
                return time.perf_counter() - begun

            seconds((0, 1))
            moved = _COPIES * _COPY_BYTES / 1e9
            return {name: moved / seconds(ways) for name, ways in (("in", (0,)), ("out", (1,)), ("both", (0, 1)))}
    finally:
        for buffer in buffers:
            device.free(buffer)
        for stream in streams:
            driver("cuStreamDestroy", stream)


@contextmanager
def whole_product(
    gemm: CudaGemm, a: Float32Array, b: Float32Array, kernel: str, config: dict[str, int], precision: str
) -> Iterator[tuple[float, Callable[[Float32Array], bool]]]:
    """Compute the whole product on the GPU. Yield its least seconds, and a function that returns whether another result
    has the same bits.
    """
    device, driver = gemm.device, open_driver()
    (m, k), n = a.shape, b.shape[1]
    places = [device.upload(a), device.upload(b), device.allocate(4 * m * n)]
    try:
        at_a, at_b, at_c = (place.address for place in places)
        what = Stored(GemmProblem(m, n, k), at_a, at_b, at_c)
        plan = gemm.plan(what, Call(None, None, kernel=kernel, config=config, precision=precision))

        def run() -> float:
            needs = plan.needs
            scratch = None if needs is None else gemm.scratch.take(needs, device.stream, None, None)
            begun = time.perf_counter()
            plan.enqueue(device.stream, 1.0, 0.0, what.a, what.b, what.c, ONE, scratch)
            driver("cuStreamSynchronize", device.stream)
            return time.perf_counter() - begun

        def same(found: Float32Array) -> bool:
            rows = max(1, (256 << 20) // (4 * n))
            part = np.empty((rows, n), np.float32)
            for start in range(0, m, rows):
                count = min(rows, m - start)
                address = what.c + 4 * n * start
                driver("cuMemcpyDtoHAsync", part.ctypes.data, address, 4 * n * count, device.stream)
                driver("cuStreamSynchronize", device.stream)
                if not np.array_equal(part[:count].view(np.uint32), found[start : start + count].view(np.uint32)):
                    return False
            return True

        run()
        yield min(run() for _ in range(2 if m <= 32768 else 1)), same
    finally:
        for place in places:
            device.free(place)


@contextmanager
def mapped(folder: str | None, arrays: Sequence[Float32Array]) -> Iterator[list[Any]]:
    """Yield mapped files in a temporary folder with the contents of the arrays; the last file stays empty."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        files: list[Any] = []
        for number, x in enumerate(arrays):
            files.append(np.memmap(Path(place) / str(number), np.float32, "w+", shape=x.shape))
            if number < len(arrays) - 1:
                files[-1][:] = x
        yield files


def streamed(
    gemm: CudaGemm, arrays: Sequence[Any], memory_bytes: int, precision: str, rounds: int
) -> tuple[float, int]:  # fmt: skip
    """Return the least seconds of `rounds` calls of the product in pieces, and the most bytes of the GPU's memory that
    one took.
    """
    a, b, out = arrays
    best, most = float("inf"), 0
    for _ in range(rounds):
        before, _total = gemm.device.memory.room()
        least = before

        def look(_done: int, _count: int) -> None:
            nonlocal least
            least = min(least, gemm.device.memory.room()[0])

        begun = time.perf_counter()
        gemmlab.gemm(
            a, b, out=out, device=gemm.device.id, memory_bytes=memory_bytes, precision=precision, progress=look
        )  # fmt: skip
        best, most = min(best, time.perf_counter() - begun), max(most, before - least)
    return best, most


def measure(size: int, memory_bytes: int, kinds: Sequence[str], precision: str, rounds: int, folder: str | None) -> Any:
    """Yield the record's entry for each kind of arrays, `pinned` or `mapped`, with m = n = k = size."""
    gemm, driver = gemm_on(0), open_driver()
    gemm.device.activate()
    rates = link_rates(gemm.device)
    choice = gemmlab.explain_choice(
        (size, size), (size, size), device="cuda:0", memory_bytes=memory_bytes, precision=precision
    )  # fmt: skip
    plan = choice.pieces
    assert plan is not None  # noqa: S101 - it was asked for
    with pinned_arrays(driver, (size, size), (size, size), (size, size)) as arrays:
        for number in (0, 1):
            fill(arrays[number], number)
        with whole_product(gemm, arrays[0], arrays[1], choice.kernel, dict(choice.config), precision) as (
            kernel_s,
            same,
        ):
            link_s = max(plan.bytes_in, plan.bytes_out) / (rates["both"] * 1e9)
            for kind in kinds:
                with mapped(folder, arrays) if kind == "mapped" else _as_they_are(arrays) as given:
                    given[2].fill(np.nan)
                    seconds, most = streamed(gemm, given, memory_bytes, precision, rounds)
                    yield {
                        "size": size, "kind": kind, "precision": precision, "kernel": choice.kernel,
                        "config": dict(choice.config), "memory_bytes": memory_bytes, "taken_bytes": most,
                        "pieces": plan.to_json(), "link_gbs": rates, "link_s": link_s, "kernel_s": kernel_s,
                        "streamed_s": seconds, "share": max(link_s, kernel_s) / seconds, "same_bits": same(given[2]),
                        "operand_bytes": 4 * size * size,
                    }  # fmt: skip


@contextmanager
def _as_they_are(arrays: list[Float32Array]) -> Iterator[list[Any]]:
    yield arrays


def main() -> None:
    """Run the command line: measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--sizes", default="27648")
    parser.add_argument("--memory-mib", type=int, default=1024)
    parser.add_argument("--kinds", default="pinned,mapped")
    parser.add_argument("--precision", default="highest")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", help="for mapped files")
    given = parser.parse_args()
    record: dict[str, Any] = {"schema": SCHEMA, "environment": describe_environment(), "results": []}
    for size in map(int, given.sizes.split(",")):
        for one in measure(
            size, given.memory_mib << 20, given.kinds.split(","), given.precision, given.rounds, given.folder
        ):
            record["results"].append(one)
            given.file.write_text(json.dumps(record, indent=1, default=str) + "\n")
            print(
                f"{size} {one['kind']} {one['precision']}: {one['streamed_s']:.3f} s, {one['share']:.1%} of the limit "
                f"(kernel {one['kernel_s']:.3f} s, link {one['link_s']:.3f} s at {one['link_gbs']['both']:.1f} GB/s), "
                f"{one['taken_bytes']:,} bytes taken of {one['memory_bytes']:,}, same bits: {one['same_bits']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
