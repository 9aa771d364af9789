"""Process groups: over both dimensions of a mesh, for messages between hosts, and for those beside a GPU's products.

NCCL's kernels occupy multiprocessors, and wait for free ones if a product's blocks occupy all. The groups of a mesh
are made for bandwidth: their kernels take 16 and more multiprocessors from a product. The transfer of a panel needs
little bandwidth, because the product of a panel lasts much longer. So the groups made here have few blocks, on a stream
of high priority, so that they start before a product's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
import torch.distributed as dist

BLOCKS = 4
"""Most multiprocessors that a rank's messages occupy; each transfers about 20 GB/s over NVLink."""
_made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_of_hosts: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_of_meshes: WeakKeyDictionary[Any, dict[tuple[tuple[int, ...], str], Any]] = WeakKeyDictionary()
"""Groups over two dimensions, by torch's group of all processes, and by their ranks and backend."""
_connected: WeakSet[Any] = WeakSet()


def message_group(group: Any, device: torch.device) -> Any:
    """Return a group of the same ranks for messages from memory of `device` that overlap with products: `group` itself
    unless NCCL sends them.

    All ranks of the group call this. The group is used again for later calls with the same `group`.
    """
    if backend_of(group, device) != dist.Backend.NCCL:
        return group
    if group not in _made:
        options = dist.ProcessGroupNCCL.Options(is_high_priority_stream=True)
        options.config.min_ctas, options.config.max_ctas = 1, BLOCKS
        _made[group] = dist.new_group(
            dist.get_process_group_ranks(group), backend="nccl", pg_options=options, use_local_synchronization=True
        )
        connect(_made[group], device)
    return _made[group]


def mesh_group(mesh: Any, dimensions: Sequence[int] | None = None) -> Any:
    """Return the group of the ranks along some dimensions of a mesh, this rank among them; by default along all.

    All these ranks call this. A group over two dimensions is torch's of all processes, or is made once and used again.
    """
    over = range(mesh.ndim) if dimensions is None else dimensions
    along = mesh.get_group(over[0])
    if len(over) == 1:
        return along
    ranks, backend = tuple(sorted(mesh.mesh.flatten().tolist())), dist.get_backend(along)
    everyone = dist.group.WORLD
    if ranks == tuple(dist.get_process_group_ranks(everyone)) and backend == dist.get_backend(everyone):
        return everyone
    made = _of_meshes.setdefault(everyone, {})
    if (ranks, backend) not in made:
        limit = _time_limit(along, torch.device(mesh.device_type))
        made[ranks, backend] = dist.new_group(
            list(ranks), timeout=limit, backend=backend, use_local_synchronization=True
        )
    return made[ranks, backend]


def connect(group: Any, device: torch.device) -> None:
    """Connect all ranks of a group if NCCL sends messages from memory of `device`; all of them call this. Later, some
    may have nothing to send, and would not take part in the first message, which connects.
    """
    if group not in _connected and backend_of(group, device) == dist.Backend.NCCL:
        # Without `device_ids` a group that also has a backend for hosts connects that one.
        dist.barrier(group=group, device_ids=[device.index])
        _connected.add(group)


def backend_of(group: Any, device: torch.device) -> str:
    """Return the name of what sends a group's messages between devices of one kind; empty if nothing does.

    `dist.get_backend` is of no use here: without a name from the caller, torch picks a backend for each kind of device,
    and it returns `"undefined"`.
    """
    try:
        return str(group._get_backend(device).name())  # noqa: SLF001 - torch has no public name for it
    except RuntimeError:
        return ""


def host_group(group: Any) -> Any:
    """Return a group of the same ranks that sends data in host memory: `group` itself, or one of gloo if that sends
    from GPUs alone.

    All ranks of the group call this. The group is used again for later calls with the same `group`, and has the time
    limit of `group`.
    """
    if backend_of(group, torch.device("cpu")):
        return group
    if group not in _of_hosts:
        limit = _time_limit(group, torch.device("cuda"))
        ranks = dist.get_process_group_ranks(group)
        _of_hosts[group] = dist.new_group(ranks, timeout=limit, backend="gloo", use_local_synchronization=True)
    return _of_hosts[group]


def _time_limit(group: Any, device: torch.device) -> Any:
    """Return how long a group waits for messages between devices of one kind."""
    return group._get_backend(device).options._timeout  # noqa: SLF001 - torch has no public name for it
