"""Checks of a launch against its kernel and architecture, and its arguments in constant bank 0."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gemmlab.core.architecture import number_of
from gemmlab.core.errors import UsageError
from gemmlab.core.gpu import GpuLimits
from gemmlab.core.program import Launch
from gemmlab.emulator.asynchronous.engine import landing_seed
from gemmlab.emulator.geometry import Geometry
from gemmlab.emulator.image import Image, plain_name
from gemmlab.emulator.launch_layout import VARIABLES

BLOCK_DIM, GRID_DIM = 0x0, 0xC
"""Offsets of blockDim and gridDim in constant bank 0."""

CLUSTER_ARCH = 90
"""Number of the first architecture with clusters: sm_90."""
PORTABLE_BLOCKS, MOST_BLOCKS = 8, 16
"""Most blocks of a cluster: on every GPU that has clusters, and on an H200 with the attribute for wide clusters."""
GRID_WORKSPACE = (0x90, 0x48)
"""Offsets in constant bank 0, before sm_90 and from there on, of the address of a cooperative launch's workspace: its
lower word; the upper word is right before it."""
EXPLICIT, CLUSTER_DIM, CLUSTER_INVERSE, CLUSTER_COUNT, CLUSTER_BLOCKS = 0x140, 0x144, 0x150, 0x15C, 0x188
"""Offsets in constant bank 0 on sm_90 of: 1 if the kernel or the launch states a cluster, else 0; a cluster's extents
in blocks (1 without a cluster); their reciprocals; the number of clusters in each dimension; the number of blocks of a
cluster."""


def geometry_of(
    image: Image, launch: Launch, limits: GpuLimits, *, wave_blocks: int, check_races: bool, global_races: bool = False,
    filling: int | None = None,
) -> Geometry:  # fmt: skip
    """Return the geometry of a launch; the keyword arguments are fields of `Geometry`.

    Raises `UsageError` if the kernel or the architecture does not allow the launch, if the arguments do not fit the
    kernel, or if the environment variable `LANDING` of the engine is not a number.
    """
    function, name = image.function, plain_name(image.function.name)
    _check_limits(image, launch, limits, name)
    cluster = _cluster(image, launch, name)
    constants = dict(image.constants)
    bank = constants[0].copy()
    bank[BLOCK_DIM : BLOCK_DIM + 12].view(np.int32)[:] = launch.threads
    bank[GRID_DIM : GRID_DIM + 12].view(np.int32)[:] = launch.grid
    in_clusters = function.cluster is not None or launch.cluster is not None
    if image.arch.startswith("sm_9"):
        _put_cluster(bank, cluster, launch.grid, explicit=in_clusters)
    _pack(bank, image, launch.args, name)
    constants[0] = bank
    return Geometry(
        grid=launch.grid,
        threads=launch.threads,
        shared_low=function.reserved_smem_bytes,
        shared_bytes=function.static_smem_bytes + launch.smem_bytes,
        registers=image.registers,
        maximum_registers=-(-function.registers // 8) * 8,
        local_bytes=image.local_bytes,
        constants=constants,
        check_races=check_races,
        wave_blocks=wave_blocks,
        byte_races=image.byte_shared,
        global_races=global_races,
        filling=filling,
        global_shift=image.global_shift,
        async_copies=image.async_copies,
        warpgroups=image.warpgroups,
        landing_seed=landing_seed(),
        old_tensor_core=number_of(image.arch) < CLUSTER_ARCH,
        asynchronous=image.asynchronous,
        parameters=function.param_base + function.param_bytes if image.parameter_addresses else 0,
        param_base=function.param_base,
        cluster=cluster,
        cooperative=launch.cooperative,
        in_clusters=in_clusters,
        constant_bytes=len(function.constants.get(VARIABLES, b"")),
        variables=image.shared_variables,
    )


def _cluster(image: Image, launch: Launch, name: str) -> tuple[int, int, int]:
    """Return the extents of a launch's clusters in blocks.

    Raises `UsageError` for extents other than those that the kernel was compiled for, for clusters on an architecture
    without them, and for too many blocks. Whether the grid consists of whole clusters is checked by the machine.
    """
    compiled, wanted = image.function.cluster, launch.cluster
    if compiled is not None and wanted not in (None, compiled):
        raise UsageError(f"{name} was compiled for clusters of {compiled} blocks, not {wanted}")
    found = wanted or compiled or (1, 1, 1)
    if found != (1, 1, 1) and number_of(image.arch) < CLUSTER_ARCH:
        raise UsageError(f"{name}: {image.arch} has no clusters")
    most = MOST_BLOCKS if launch.wide_clusters else PORTABLE_BLOCKS
    if not 1 <= math.prod(found) <= most:
        allowed = "" if launch.wide_clusters else f", up to {MOST_BLOCKS} with wide_clusters=True (a launch attribute)"
        raise UsageError(f"{name}: a cluster of {math.prod(found)} blocks; there may be up to {most}{allowed}")
    return found


def put_grid_workspace(geometry: Geometry, arch: str, address: int) -> None:
    """Write the address of a cooperative launch's workspace into constant bank 0 (PTX's envreg 1 and 2)."""
    low = GRID_WORKSPACE[number_of(arch) >= CLUSTER_ARCH]
    words = geometry.constants[0][low - 4 : low + 4].view(np.uint32)
    words[:] = address >> 32, address & 0xFFFFFFFF


def _put_cluster(bank: Any, cluster: tuple[int, int, int], grid: tuple[int, int, int], *, explicit: bool) -> None:
    """Write the words of constant bank 0 from which compiled code computes the special registers of clusters."""
    bank[EXPLICIT : EXPLICIT + 4].view(np.uint32)[0] = explicit
    bank[CLUSTER_DIM : CLUSTER_DIM + 12].view(np.uint32)[:] = cluster
    # Compiled code multiplies block indices by the reciprocals and rounds down, so these must not be too small.
    inverse = np.float32(1) / np.array(cluster, np.float32)
    above = np.where(inverse.astype(np.float64) * cluster < 1, np.nextafter(inverse, np.float32(2)), inverse)
    bank[CLUSTER_INVERSE : CLUSTER_INVERSE + 12].view(np.float32)[:] = above
    counts = [extent // size for extent, size in zip(grid, cluster, strict=True)]
    bank[CLUSTER_COUNT : CLUSTER_COUNT + 12].view(np.uint32)[:] = counts
    bank[CLUSTER_BLOCKS : CLUSTER_BLOCKS + 4].view(np.uint32)[0] = math.prod(cluster)


def _check_limits(image: Image, launch: Launch, limits: GpuLimits, name: str) -> None:
    for what, values, most in (("grid", launch.grid, limits.grid_dim), ("block", launch.threads, limits.block_dim)):
        for axis, value, limit in zip("xyz", values, most, strict=True):
            if not 1 <= value <= limit:
                raise UsageError(f"{name}: {what} {values}: {axis} must be 1 to {limit} on {limits.arch}")
    x, y, z = launch.threads
    function, threads = image.function, x * y * z
    most_threads = min(limits.threads_per_block, function.max_threads or limits.threads_per_block)
    if threads > most_threads:
        raise UsageError(f"{name}: {threads} threads a block; at most {most_threads} on {limits.arch}")
    if function.block is not None and function.block != launch.threads:
        raise UsageError(f"{name} demands blocks of {function.block} threads, not {launch.threads}")
    smem = function.static_smem_bytes + launch.smem_bytes
    if smem > limits.smem_per_block:
        raise UsageError(f"{name}: {smem} bytes of shared memory a block; {limits.arch} has {limits.smem_per_block}")
    warps = -(-threads // 32)
    registers = -(-function.registers * 32 // limits.register_unit) * limits.register_unit * warps
    if registers > limits.registers_per_block:
        raise UsageError(
            f"{name}: {threads} threads of {function.registers} registers need {registers};"
            f" a block of {limits.arch} has {limits.registers_per_block}"
        )


def _pack(bank: Any, image: Image, args: tuple[Any, ...], name: str) -> None:
    """Write the arguments at their offsets in constant bank 0: NumPy values as their bytes, buffers as their addresses.

    Raises `UsageError` if the number of arguments, or the size of one, is not what the kernel takes.
    """
    params = image.function.params
    if len(args) != len(params):
        raise UsageError(f"{name} takes {len(params)} arguments, got {len(args)}")
    for number, (argument, param) in enumerate(zip(args, params, strict=True), start=1):
        value = argument if isinstance(argument, np.generic | np.ndarray) else np.uint64(argument.address)
        raw = np.frombuffer(value.tobytes(), np.uint8)
        if raw.size != param.size:
            raise UsageError(f"{name}: argument {number} has {raw.size} bytes; the kernel takes {param.size}")
        start = image.function.param_base + param.offset
        bank[start : start + raw.size] = raw
