"""Processes that run a function as ranks of a group on this machine: gloo's, or NCCL's with a GPU for each rank."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

SECONDS = 60


def on_ranks(
    count: int, function: Callable[..., Any], *arguments: Any, seconds: float = SECONDS, backend: str = "gloo"
) -> list[Any]:  # fmt: skip
    """The value of `function(rank, *arguments)` on each of `count` ranks.

    It is the text of an exception, and `None` for a rank that ended.
    """
    context = get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        answers = [context.Pipe(duplex=False) for _ in range(count)]
        store = str(Path(folder) / "store")
        processes = [
            context.Process(
                target=_rank, args=(rank, count, store, seconds, backend, answers[rank][1], function, arguments)
            )
            for rank in range(count)
        ]
        for process in processes:
            process.start()
        for _, writer in answers:
            writer.close()
        found = [_answer(reader) for reader, _ in answers]
        for process in processes:
            process.join(SECONDS)
            process.kill()
    return found


def _answer(reader: Any) -> Any:
    try:
        return reader.recv() if reader.poll(2 * SECONDS) else "no answer"
    except EOFError:
        return None


def _rank(
    rank: int, count: int, store: str, seconds: float, backend: str, answer: Any, function: Any, arguments: Any
) -> None:  # fmt: skip
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    if backend == "nccl":
        torch.cuda.set_device(rank)
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=count,
                            timeout=timedelta(seconds=seconds))  # fmt: skip
    try:
        answer.send(function(rank, *arguments))
    except Exception as error:  # noqa: BLE001 - the test shows it
        answer.send(f"{type(error).__name__}: {error}\n{traceback.format_exc()}")
    answer.close()
