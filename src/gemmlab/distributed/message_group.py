"""Process groups for messages that are sent while a GPU multiplies.

NCCL's kernels occupy multiprocessors, and wait for free ones if a product's blocks occupy all. The groups of a mesh
are made for bandwidth: their kernels take 16 and more multiprocessors from a product. The transfer of a panel needs
little bandwidth, because the product of a panel lasts much longer. So the groups made here have few blocks, on a stream
of high priority, so that they start before a product's.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist

BLOCKS = 4
"""Most multiprocessors that a rank's messages occupy; each transfers about 20 GB/s over NVLink."""
_made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_of_hosts: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def message_group(group: Any) -> Any:
    """Return a group of the same ranks for messages that overlap with products: `group` itself unless it is NCCL's.

    All ranks of the group call this. The group is used again for later calls with the same `group`.
    """
    if dist.get_backend(group) != dist.Backend.NCCL:
        return group
    if group not in _made:
        options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
        options.config.min_ctas, options.config.max_ctas = 1, BLOCKS
        _made[group] = dist.new_group(
            dist.get_process_group_ranks(group), pg_options=options, use_local_synchronization=True
        )
        # The barrier connects all ranks now; later some may have nothing to send and would not connect.
        dist.barrier(group=_made[group])
    return _made[group]


def host_group(group: Any) -> Any:
    """Return a group of the same ranks that sends data in host memory: `group` itself, or one of gloo if that is
    NCCL's.

    All ranks of the group call this. The group is used again for later calls with the same `group`, and has the time
    limit of `group`.
    """
    if dist.get_backend(group) != dist.Backend.NCCL:
        return group
    if group not in _of_hosts:
        # torch has no public name for a group's time limit.
        limit = group._get_backend(torch.device("cuda")).options._timeout  # noqa: SLF001
        ranks = dist.get_process_group_ranks(group)
        _of_hosts[group] = dist.new_group(ranks, timeout=limit, backend="gloo", use_local_synchronization=True)
    return _of_hosts[group]
