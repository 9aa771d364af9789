"""An emulated GPU: the emulator, with the limits of one architecture, as a device."""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gemmlab.core import gpu
from gemmlab.core.counters import Observation
from gemmlab.core.errors import DeviceError, UsageError, WrongResultError
from gemmlab.core.program import Artifact, Launch, Program
from gemmlab.core.tensor_map import TiledMap
from gemmlab.core.time_limit import blocks_in_words, current_limit
from gemmlab.core.trace import Trace, TraceRequest
from gemmlab.devices.device import Buffer, DeviceInfo, Window
from gemmlab.devices.device_name import DeviceIdentity, DeviceName
from gemmlab.devices.emulated_code import EmulatedLoaded, decoded, hazards_of_ptx
from gemmlab.devices.texels import texels_of
from gemmlab.emulator.endless_loops import TIMED_OUT
from gemmlab.emulator.geometry import Geometry
from gemmlab.emulator.launching import geometry_of, put_grid_workspace
from gemmlab.emulator.machine import Outcome, run
from gemmlab.emulator.memory_map import Allocation, MemoryMap
from gemmlab.emulator.report import observe
from gemmlab.emulator.trace_buffers import recording
from gemmlab.toolchain import build_cuda
from gemmlab.toolchain.cubin import read_cubin

MODELS = {
    "sm_75": "T4", "sm_80": "A100", "sm_86": "RTX A6000", "sm_87": "AGX Orin", "sm_89": "L40S", "sm_90": "H200",
    "sm_90a": "H200",
}  # fmt: skip
"""Architecture -> the GPU model whose number of multiprocessors determines how many blocks are resident together."""
ARCHITECTURES = ("sm_80", "sm_89", "sm_90")
"""The architectures for which rungs are compiled: each rung for those that have the features that it needs."""

_UNCOOPERATIVE = (
    "this_grid().sync() needs a cooperative launch (cooperative=True; in the header of a kernel file "
    "`cooperative = true`)"
)
GRID_WORKSPACE_BYTES = 64
"""Bytes of the workspace by which `this_grid().sync()` of a cooperative launch waits. CUDA's headers use fewer."""


class EmulatedDevice(DeviceIdentity):
    """A device that runs machine code of `arch`, instruction by instruction, on this machine's processor.

    As on a GPU, several threads may use one device at once. They share its memory; each launch has its own counters and
    hazards.
    """

    def __init__(self, arch: str = "sm_90", *, check_races: bool = True, wave_blocks: int | None = None) -> None:
        """Create the device for `arch`, one of `MODELS`. `check_races`: detect races in shared memory.

        `wave_blocks` is the number of consecutive blocks (a wave) within which `sectors_distinct` counts a sector once,
        by default as many as are resident together on the GPU in `MODELS`.
        """
        if arch not in MODELS:
            raise DeviceError(f"no emulator for {arch!r}; there is one for {', '.join(MODELS)}")
        self.device_name, self.arch = DeviceName("emulated", arch), arch
        self.limits = gpu.limits(arch)
        self.check_races = check_races
        self.wave_blocks = wave_blocks
        self._memory = MemoryMap()

    def session(self) -> Self:
        """Return a copy of the device with separate, empty memory."""
        apart = copy.copy(self)
        apart._memory = MemoryMap()  # noqa: SLF001 - of its own class
        return apart

    def describe(self) -> DeviceInfo:
        """Return the architecture and the most threads of a block. There are no peaks: the emulator's time says nothing
        about a GPU's.
        """
        facts = {"arch": self.arch, "threads_per_block": self.limits.threads_per_block, "emulated": True}
        return DeviceInfo(self.id, f"emulated {self.arch}", facts)

    def target(self, config: Mapping[str, int]) -> str:  # noqa: ARG002 - the protocol's; one architecture serves all
        """Return the architecture, such as `"sm_90"`, for every configuration."""
        return self.arch

    def build(self, program: Program) -> Artifact:
        """Compile a program, or fetch its code from the cache; a program for another architecture is compiled for this
        one.

        Raises `CompileError`, `UsageError` for another language than CUDA C++.
        """
        if program.language != "cuda":
            raise UsageError(f"{program.kernel} is written in {program.language}; {self.id} runs cuda code")
        # Code with the features of one architecture (sm_90a) runs here like other code for it.
        same = program.target.rstrip("af") == self.arch.rstrip("af")
        return build_cuda.build(program if same else replace(program, target=self.arch))

    def load(self, artifact: Artifact) -> EmulatedLoaded:
        """Decode the machine code of a cubin for this architecture.

        Raises `UsageError` if it is no cubin or has an instruction unknown to the emulator, `NoCompilerError` if the
        artifact has no disassembly and no disassembler is installed, `DeviceError` for code of another architecture.
        """
        if artifact.kind != "cubin":
            raise UsageError(f"{artifact.kernel}: {self.id} loads a cubin, not a {artifact.kind}")
        cubin = read_cubin(artifact.code, artifact.kernel)
        if cubin.arch.rstrip("af") != self.arch.rstrip("af"):
            raise DeviceError(f"{artifact.kernel} is for {cubin.arch}; this device is {self.id}")
        return decoded(artifact, cubin, self._memory)

    def allocate(self, nbytes: int) -> Allocation:
        """Return memory that counts as unwritten; `MemoryError` if there is too little."""
        return self._memory.allocate(nbytes)

    def allocate_sparse(self, nbytes: int) -> Allocation:
        """Return memory whose unwritten parts take no memory of this machine; `MemoryError` if the system refuses
        it.
        """
        return self._memory.allocate(nbytes, sparse=True)

    def write(self, window: Window, array: npt.NDArray[Any]) -> None:
        """Copy a C-contiguous array into a part of an allocation."""
        allocation, offset = _part(window)
        self._memory.write(allocation, array, offset)

    def read(self, window: Window, out: npt.NDArray[Any]) -> None:
        """Copy bytes from the start of a window into a C-contiguous array, as many as the array has."""
        allocation, offset = _part(window)
        out.reshape(-1).view(np.uint8)[:] = allocation.data[offset : offset + out.nbytes]

    def upload(self, array: npt.NDArray[Any]) -> Allocation:
        """Return a buffer with a copy of a C-contiguous array."""
        allocation = self._memory.allocate(array.nbytes)
        self._memory.write(allocation, array)
        return allocation

    def download(self, buffer: Allocation, out: npt.NDArray[Any]) -> None:
        """Copy bytes from the start of a buffer into a C-contiguous array, as many as the array has."""
        out.reshape(-1).view(np.uint8)[:] = buffer.data[: out.nbytes]

    def free(self, buffer: Allocation) -> None:
        """Free a buffer and the textures over it."""
        self._memory.free(buffer)

    @property
    def most_texels(self) -> int:
        """The most texels of one texture over linear memory."""
        return self.limits.texture_1d_linear

    def linear_texture(self, buffer: Buffer, channels: int = 4, element: str = "f32") -> int:
        """Return the handle of a texture over a buffer (see `texture.texels_of`); it lives as long as the buffer."""
        texels = texels_of(buffer, channels, element, self.most_texels)
        return self._memory.texture(texels.address, texels.count, channels, element)

    def tensor_map(self, tensor: TiledMap) -> bytes:
        """Return the 128 bytes of a tensor map, made without a driver. `UsageError` for a map that a driver refuses."""
        return tensor.encode()

    def launch(self, loaded: EmulatedLoaded, launch: Launch) -> None:
        """Run once, as `observe` does. Raises `WrongResultError` for a hazard, because results may be wrong."""
        observation = self.observe(loaded, launch)
        if observation.hazards:
            raise WrongResultError("; ".join(hazard.explain() for hazard in observation.hazards[:4]))

    def observe(
        self, loaded: EmulatedLoaded, launch: Launch, *, races: bool = False, filling: int | None = None
    ) -> Observation:
        """Run once, and return counters and hazards. If a hazard ends the run, `Observation.stopped` says so.

        `races` also detects races in global memory, which takes several times as long and 64 bytes for each word, or
        for each narrower element that the code accesses. `filling` is the byte that unwritten memory reads as. The
        kernel's `printf` is written to `sys.stdout` at the end, unless there is a `filling`. Raises `TimeLimitError`
        when the time limit (`core.time_limit`) passes, and `UsageError` for a cooperative launch of more blocks than
        are resident together.
        """
        geometry, outcome = self._run(loaded, launch, races=races, filling=filling)
        observation = observe(loaded.image, geometry, outcome, self.id)
        hazards = observation.hazards
        if not launch.cooperative and "%envreg" in loaded.artifact.texts.get("ptx", ""):
            hazards = tuple(replace(one, message=f"{one.message}; {_UNCOOPERATIVE}") if one.kind == "trap" else one
                            for one in hazards)  # fmt: skip
        return replace(observation, hazards=(*hazards, *hazards_of_ptx(loaded)), printed=outcome.printed)

    def trace(self, loaded: EmulatedLoaded, launch: Launch, request: TraceRequest) -> Trace:
        """Run once and record the parts that `request` names.

        The trace has counters and hazards as from `observe`, without the hazards that only PTX shows.
        """
        geometry, outcome = self._run(loaded, launch, request)
        observation = observe(loaded.image, geometry, outcome, self.id)
        assert outcome.recorded is not None  # noqa: S101 - it was asked for
        return recording(outcome.recorded, observation, launch.grid, launch.threads, geometry.shared_low)

    def _run(
        self, loaded: EmulatedLoaded, launch: Launch, trace: TraceRequest | None = None, *, races: bool = False,
        filling: int | None = None,
    ) -> tuple[Geometry, Outcome]:  # fmt: skip
        resident = self.resident_blocks(loaded, launch)
        wave_blocks = self.wave_blocks or resident
        geometry = geometry_of(
            loaded.image, launch, self.limits, wave_blocks=wave_blocks, check_races=self.check_races or races,
            global_races=races, filling=filling,
        )  # fmt: skip
        limit = current_limit()
        workspace = self._grid_workspace(loaded, launch, geometry, resident) if launch.cooperative else None
        try:
            outcome = run(loaded.image.code, geometry, self._memory, resident_limit=resident, trace=trace, limit=limit)
        finally:
            if workspace is not None:
                self._memory.free(workspace)
        if launch.cooperative:
            # All blocks are resident, so that they may wait for each other.
            outcome = replace(outcome, awaited=())
        if outcome.printed and filling is None:
            # As the CUDA runtime does when a launch has ended.
            sys.stdout.write(outcome.printed)
            sys.stdout.flush()
        if limit is not None and outcome.stopped == TIMED_OUT:
            blocks = math.prod(launch.grid)
            raise limit.error(
                loaded.artifact.kernel, blocks_in_words(outcome.finished, blocks, outcome.instructions),
                blocks_finished=outcome.finished, blocks=blocks, instructions=outcome.instructions,
            )  # fmt: skip
        return geometry, outcome

    def _grid_workspace(
        self, loaded: EmulatedLoaded, launch: Launch, geometry: Geometry, resident: int
    ) -> Allocation:  # fmt: skip
        """Allocate the workspace by which the blocks of a cooperative launch wait for each other.

        Raises `UsageError` for more blocks than are resident together.
        """
        if (blocks := math.prod(launch.grid)) > resident:
            raise UsageError(
                f"{loaded.artifact.kernel}: a cooperative launch of {blocks} blocks; {resident} are resident together "
                f"on {MODELS[self.arch]}"
            )
        workspace = self.upload(np.zeros(GRID_WORKSPACE_BYTES, np.uint8))
        put_grid_workspace(geometry, self.arch, workspace.address)
        return workspace

    def resident_blocks(self, loaded: EmulatedLoaded, launch: Launch) -> int:
        """Return the number of blocks that the GPU in `MODELS` runs at once; 1 if not even one fits."""
        image = loaded.image
        threads = launch.threads[0] * launch.threads[1] * launch.threads[2]
        if not 1 <= threads <= self.limits.threads_per_block:
            return 1
        smem = image.function.static_smem_bytes + launch.smem_bytes
        fit = gpu.occupancy(self.limits, max(image.function.registers, 1), smem, threads).blocks
        return max(1, fit * gpu.model(MODELS[self.arch]).sms)

    def time(self, loaded: EmulatedLoaded, launch: Launch, repeats: int, inner: int = 1) -> list[float]:
        """Return `repeats` times of one emulated run in microseconds, each the mean over `inner` runs in a row.

        They say nothing about a GPU.
        """
        samples = []
        for _ in range(repeats):
            start = time.perf_counter_ns()
            for _ in range(inner):
                self.launch(loaded, launch)
            samples.append((time.perf_counter_ns() - start) / 1e3 / inner)
        return samples


def _part(window: Window) -> tuple[Allocation, int]:
    """Return the allocation that a window, or a window of a window, is part of, and its offset there in bytes."""
    offset, whole = window.offset, window.whole
    while isinstance(whole, Window):
        offset, whole = offset + whole.offset, whole.whole
    assert isinstance(whole, Allocation)  # noqa: S101 - a device takes back only its own buffers
    return whole, offset
