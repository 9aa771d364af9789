"""Time products of DTensors on several GPUs of one host, beside one GPU and beside torch's own product of DTensors.

    torchrun --nproc-per-node 2 makers/distributed_times.py FILE [--sizes 16384,32768] [--precisions highest,float32]
    python makers/distributed_times.py FILE --predict    # the model has changed: predict what the record has measured

Both operands are cut into rows, so one of them is sent. The ways take turns; a time is that of the slowest rank, from a
barrier on. `alone` is a rank's share of the product with all operands in its memory, by one call, and `pieces` the same
by the products of a call of several GPUs, so that nothing but messages is missing. `panels` are the messages without
the products, and `messages` the product with panels that NCCL sends in place of the copy engines. A result is compared
with that of one GPU, whose sums may have another order; a result with `reproducible` must have the bits of one rank
that adds panel by panel. Rank 0 writes the record after each size and precision. Without CUDA it runs on CPUs, with
gloo, for tests.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Shard

import gemmlab
import gemmlab.distributed
from gemmlab.core.environment import describe_environment
from gemmlab.core.files import replace_file
from gemmlab.core.precision import UNIT_ROUNDOFF
from gemmlab.devices.select import open_device
from gemmlab.distributed import in_turns
from gemmlab.distributed.algorithm import choose
from gemmlab.distributed.panel_sources import common_memory, sources_of
from gemmlab.distributed.panel_turns import turns_of_ranks
from gemmlab.distributed.panels import PANEL, Source
from gemmlab.distributed.peer_memory import peer_memory
from gemmlab.distributed.placements import share
from gemmlab.distributed.traffic import Traffic

SCHEMA = "gemmlab.distributed/1"
PAUSE = 0.15
"""Seconds in which the GPUs rest before each call that is timed."""
MESHES = (
    ((8,), None, "NVLink, 383 GB/s a GPU"), ((8, 8), 50e9, "InfiniBand, 50 GB/s a GPU"),
    ((32, 32), 50e9, "InfiniBand, 50 GB/s a GPU"),
)  # fmt: skip
"""Meshes to predict: extents, the rate of the slowest link in bytes a second (`None` for the model's), its name."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--sizes", default="16384,32768")
    parser.add_argument("--precisions", default="highest,float32")
    parser.add_argument("--rounds", type=int, default=5, help="rounds at 32768; at smaller extents there are more")
    parser.add_argument("--predict", action="store_true", help="renew the predictions of a record; needs no GPU")
    options = parser.parse_args()
    if options.predict:
        record = with_predictions(json.loads(options.file.read_text(encoding="utf-8")))
        replace_file(options.file, (json.dumps(record, indent=1) + "\n").encode())
        return
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    if kind == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.backends.cuda.matmul.allow_tf32 = False
    own = torch.device("cuda", torch.cuda.current_device()) if kind == "cuda" else None
    dist.init_process_group("nccl" if own else "gloo", timeout=timedelta(seconds=60), device_id=own)
    try:
        mesh = init_device_mesh(kind, (dist.get_world_size(),))
        own_device = open_device(str(own or kind))
        record = {
            "schema": SCHEMA, "environment": describe_environment(), "ranks": mesh.size(), "pause_s": PAUSE,
            "device": asdict(own_device.describe()), "torch": torch.__version__, "rounds": options.rounds,
            "panel": PANEL, "copy_engines": peer_memory(mesh.get_group(0), own or torch.device("cpu")) is not None,
            "predictions": predictions(), "results": [],
        }  # fmt: skip
        for size in map(int, options.sizes.split(",")):
            for precision in options.precisions.split(","):
                record["results"].append(
                    measured(mesh, size, precision, options.rounds * max(1, min(5, 32768 // size * 2 - 1)))
                )
                if dist.get_rank() == 0:
                    replace_file(options.file, (json.dumps(record, indent=1) + "\n").encode())
                    print(json.dumps(record["results"][-1]), flush=True)
    finally:
        dist.destroy_process_group()


def measured(mesh: DeviceMesh, size: int, precision: str, rounds: int) -> dict[str, Any]:
    """Return the record's entry for one size and precision: each way's times in milliseconds, one for each round, and
    bytes, memory and errors.
    """
    rank, ranks, kind = dist.get_rank(), mesh.size(), mesh.device_type
    generator = torch.Generator(kind).manual_seed(4711)  # the same on all ranks, so that each can check its rows
    a, b = (torch.rand((size, size), device=kind, generator=generator) - 0.5 for _ in "ab")
    rows = range(size * rank // ranks, size * (rank + 1) // ranks)
    own_a, own_b = a[rows.start : rows.stop].contiguous(), b[rows.start : rows.stop].contiguous()
    left, right = (DTensor.from_local(own, mesh, [Shard(0)], run_check=False) for own in (own_a, own_b))
    choice = gemmlab.distributed.explain_choice(left, right, precision=precision)
    traffic = Traffic()
    ways: dict[str, Callable[[], object]] = {
        "one": lambda: gemmlab.gemm(a, b, precision=precision) if rank == 0 else None,
        "ours": lambda: gemmlab.distributed.gemm(left, right, precision=precision),
        "torch": lambda: left @ right,
        "alone": lambda: gemmlab.gemm(own_a, b, precision=precision),
        "pieces": lambda: in_pieces(left, right, b, precision),
        "panels": lambda: messages(own_b, mesh, by_terms=choice.best.by_terms),
        "messages": lambda: by_messages(left, right, precision),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    # A new order each round, the same on all ranks.
    order = random.Random(size)  # noqa: S311 - an order of measurements
    for turn in range(-1, rounds):
        for name in order.sample(list(ways), len(ways)):
            took = slowest(ways[name], kind)
            if turn >= 0:
                times[name].append(took)
    start_memory(kind)
    product = gemmlab.distributed.gemm(left, right, precision=precision, traffic=traffic)
    most = most_memory(kind)
    alone = gemmlab.gemm(own_a, b, precision=precision)
    worst = error(product.to_local(), alone, own_a, b)
    pieces = torch.equal(product.to_local(), in_pieces(left, right, b, precision))
    panels_of_one = by_panels(own_a, b, size) if precision == "highest" else None
    fixed = gemmlab.distributed.gemm(left, right, reproducible=True).to_local() if panels_of_one is not None else None
    same = None if fixed is None or panels_of_one is None else bool(torch.equal(fixed, panels_of_one))
    return {
        "size": size, "precision": precision, "algorithm": choice.best.algorithm,
        "predicted_ms": choice.best.seconds * 1e3, "times_ms": times, "received_bytes": traffic.received,
        "formula_bytes": choice.best.bytes_meanwhile + choice.best.bytes_before,
        "buffer_bytes": traffic.largest_buffer, "most_bytes": most, "error_in_units": worst,
        "same_bits_as_one_rank": same, "same_bits_as_pieces": bool(pieces),
    }  # fmt: skip


def with_predictions(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record with the predictions of today's model. Its times stay as they are."""
    results = []
    for one in record["results"]:
        extents, ranks = (one["size"],) * 3, (record["ranks"],)
        best = choose(extents, ("rows",), ("rows",), ranks, "cuda", precision=one["precision"]).best
        results.append(one | {"predicted_ms": best.seconds * 1e3})
    return record | {"predictions": predictions(), "results": results}


def predictions() -> list[dict[str, Any]]:
    """Return the model's predictions for the `MESHES`. On a mesh of one dimension both operands are cut into rows, on
    one of two into rows along the first and into columns along the second.
    """
    found = list[dict[str, Any]]()
    for mesh, link, name in MESHES:
        for size in (32768, 131072):
            for precision in ("highest", "float32"):
                cut_a, cut_b = (("rows",), ("rows",)) if len(mesh) == 1 else (("rows", "columns"), ("rows", "columns"))
                best = choose((size, size, size), cut_a, cut_b, mesh, "cuda", precision=precision, link=link).best
                one = choose((size, size, size), ("replica",), ("replica",), (1,), "cuda", precision=precision).best
                found.append({
                    "mesh": list(mesh), "link": name, "size": size, "precision": precision,
                    "algorithm": best.algorithm, "seconds": best.seconds, "one_seconds": one.seconds,
                })  # fmt: skip
    return found


def slowest(way: Callable[[], object], kind: str) -> float:
    """Call `way` on every rank after a pause and a barrier; return the slowest rank's milliseconds.

    Without the pause, what ran before decides how warm the GPUs are, and so their clocks.
    """
    dist.barrier()
    synchronize(kind)
    time.sleep(PAUSE)
    dist.barrier()
    synchronize(kind)
    start = time.perf_counter()
    way()
    synchronize(kind)
    took = torch.tensor([(time.perf_counter() - start) * 1e3], device=kind)
    dist.all_reduce(took, op=dist.ReduceOp.MAX)
    return float(took.item())


def messages(own: torch.Tensor, mesh: DeviceMesh, *, by_terms: bool) -> None:
    """Send all panels as a product of squares does, but without multiplying. `own` are this rank's rows of B."""
    rows, depth = own.shape
    group, device = mesh.get_group(0), own.device
    begun = torch.cuda.current_stream().record_event() if own.is_cuda else None
    groups = (None, group)
    memory = common_memory(groups, device)
    shares = [share(depth, mesh.size(), rank) for rank in range(mesh.size())]
    turns = turns_of_ranks(
        rows, depth, depth, sends_a=False, sends_b=True, fixed=False, by_terms=by_terms, apart=memory is not None,
        shares=shares,
    )  # fmt: skip
    rank = dist.get_rank(group)
    _, sent = sources_of((own.t(), own), groups, ([], shares), turns, rank, Traffic(), begun, memory)
    sent.start(0)
    for turn in range(len(turns[rank])):
        with memory.alternate(turn, after_all=False) if memory else nullcontext():
            sent.take(turn)
            if turn + 1 < len(turns[rank]):
                sent.start(turn + 1)
            sent.finish(turn)
    if memory:
        memory.meet()
        memory.join()


def by_messages(a: DTensor, b: DTensor, precision: str) -> None:
    """Multiply with panels that the process group sends."""
    with changed("common_memory", lambda *_: None):
        gemmlab.distributed.gemm(a, b, precision=precision)


def in_pieces(a: DTensor, b: DTensor, whole: torch.Tensor, precision: str) -> torch.Tensor:
    """Return this rank's rows of the product, by the products and streams of a call of several GPUs, but without
    messages: panels of B are read from `whole`, all of B in this rank's memory.
    """

    def at_hand(local: tuple[torch.Tensor, torch.Tensor], _groups: tuple[Any, Any], *more: Any) -> list[Source]:
        # Between no ranks nothing is sent.
        return sources_of((local[0], whole), (None, None), *more)

    with changed("sources_of", at_hand):
        return gemmlab.distributed.gemm(a, b, precision=precision).to_local()


@contextmanager
def changed(name: str, value: object) -> Iterator[None]:
    """Within this block, let a name of the module `in_turns` have another value."""
    found, vars(in_turns)[name] = vars(in_turns)[name], value
    try:
        yield
    finally:
        vars(in_turns)[name] = found


def by_panels(a: torch.Tensor, b: torch.Tensor, depth: int) -> torch.Tensor:
    """Return a product on one rank that adds panel by panel, in order."""
    result = torch.empty((a.shape[0], b.shape[1]), device=a.device)
    for first in range(0, depth, PANEL):
        last = first + PANEL
        before = None if first == 0 else result
        gemmlab.gemm(
            a[:, first:last], b[first:last], c=before, beta=0.0 if before is None else 1.0, out=result,
            reproducible=True,
        )  # fmt: skip
    return result


def error(found: torch.Tensor, other: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> float:
    """Return the largest difference of two products of a and b in units of 2^-24 |A| |B|, over 64 rows."""
    rows = torch.linspace(0, a.shape[0] - 1, 64, device=a.device).long()
    scale = a[rows].abs() @ b.abs()
    return float(((found[rows] - other[rows]).abs() / scale).max().item()) / UNIT_ROUNDOFF


def synchronize(kind: str) -> None:
    if kind == "cuda":
        torch.cuda.synchronize()


def start_memory(kind: str) -> None:
    if kind == "cuda":
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def most_memory(kind: str) -> int | None:
    """Return the most bytes that torch had allocated since `start_memory`, less those that are allocated now; `None` on
    a CPU.
    """
    if kind != "cuda":
        return None
    torch.cuda.synchronize()
    return int(torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated())


if __name__ == "__main__":
    main()
