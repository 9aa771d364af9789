"""Process groups for messages that travel while a GPU multiplies.

NCCL's kernels take multiprocessors, and wait for free ones behind the blocks of a product. The groups of a mesh are
made for speed: 16 and more multiprocessors that blocks of a product then lack. Panels need little of a link, since
their products last much longer; their group has few blocks, which start before those of a product.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch.distributed as dist

BLOCKS = 4
"""Multiprocessors that the messages of a rank take at most; some 20 GB/s each over NVLink."""
_made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def message_group(group: Any) -> Any:
    """Return a group of the same ranks for messages beside products: `group` itself unless it is NCCL's.

    All ranks of the group call it. The group lives as long as `group` does, or until `destroy_process_group`.
    """
    if dist.get_backend(group) != dist.Backend.NCCL:
        return group
    if group not in _made:
        options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
        options.config.min_ctas, options.config.max_ctas = 1, BLOCKS
        _made[group] = dist.new_group(
            dist.get_process_group_ranks(group), pg_options=options, use_local_synchronization=True
        )
        # All ranks make the connections together: later some may have nothing to send.
        dist.barrier(group=_made[group])
    return _made[group]
