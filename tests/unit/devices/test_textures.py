"""One-dimensional textures over linear memory: what they cover, what a fetch gives on the emulator, what is counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import gemmlab
from gemmlab.core.errors import ArgumentTypeError, UsageError
from gemmlab.core.program import Launch
from gemmlab.devices.cpu import CpuDevice
from gemmlab.devices.device import TextureDevice, Window
from gemmlab.devices.emulated import EmulatedDevice
from gemmlab.devices.texels import Texels, matrix_texture, texels_of
from gemmlab.emulator.launch_layout import Texture
from gemmlab.emulator.texture_map import TextureMap
from support.cuda_source import needs_compiler
from support.texture_kernels import FORMS, INDEX, LANES, SOURCE, bits, expected, texels

ARCHITECTURES = ("sm_80", "sm_89", "sm_90")
each_arch = pytest.mark.parametrize("arch", ARCHITECTURES)


@dataclass(frozen=True)
class Memory:
    """Memory that nobody reads."""

    address: int
    nbytes: int


def run(kernel: str, args: Any, device: Any) -> Any:
    return gemmlab.launch(SOURCE, kernel, 1, LANES, args, device=device)


@pytest.mark.in_turns(20)
@needs_compiler
@each_arch
@pytest.mark.parametrize("kernel", FORMS)
def test_a_fetch_gives_the_texel_bit_by_bit_and_zeros_outside(kernel: str, arch: str) -> None:
    _, _, out, parts = FORMS[kernel]
    done = run(kernel, (texels(kernel), INDEX, np.zeros(LANES * len(parts), out)), f"emulated:{arch}")
    assert bits(done.outputs[-1]).tolist() == expected(kernel).tolist()
    assert done.hazards == ()


@pytest.mark.in_turns(20)
@needs_compiler
@each_arch
def test_halves_arrive_as_floats(arch: str) -> None:
    table = np.array([1.5, -0.0, 6e-8, 65504, np.inf, -np.inf, 0.333], np.float16)
    done = run("fetch_float", (table, np.arange(LANES, dtype=np.int32), np.ones(LANES, np.float32)), f"emulated:{arch}")
    wanted = np.zeros(LANES, np.float32)
    wanted[:7] = table
    assert bits(done.outputs[-1]).tolist() == bits(wanted).tolist()


@pytest.mark.in_turns(20)
@needs_compiler
@each_arch
def test_lanes_that_do_not_fetch_keep_what_they_had(arch: str) -> None:
    table = np.arange(4 * LANES, dtype=np.float32).reshape(LANES, 4)
    done = run("fetch_some", (table, 40, np.zeros(4 * LANES, np.float32)), f"emulated:{arch}")
    fetched = (np.arange(LANES) % 3 == 0) & (np.arange(LANES) < 40)
    wanted = np.where(fetched[:, None], table, [1, 2, 3, 4])
    assert done.outputs[-1].reshape(LANES, 4).tolist() == wanted.tolist()
    assert done.counters.facts()["texture_load_requests"] == 2


@pytest.mark.in_turns(20)
@needs_compiler
@each_arch
def test_lanes_may_fetch_from_different_textures(arch: str) -> None:
    even, odd = np.arange(LANES, dtype=np.float32), -np.arange(LANES, dtype=np.float32)
    done = run("fetch_either", (even, odd, np.zeros(LANES, np.float32)), f"emulated:{arch}")
    assert done.outputs[-1].tolist() == np.where(np.arange(LANES) % 2, odd, even).tolist()
    facts = done.counters.facts()
    assert (facts["texture_load_requests"], facts["global_store_requests"]) == (4, 2)


@pytest.mark.in_turns(20)
@needs_compiler
@each_arch
def test_requests_and_sectors_are_counted_as_those_of_textures(arch: str) -> None:
    table, out = np.ones((64, 4), np.float32), np.zeros(4 * LANES, np.float32)
    index = np.arange(LANES, dtype=np.int32)
    index[32:] = 1000
    facts = run("fetch_float4", (table, index, out), f"emulated:{arch}").counters.facts()
    # 32 texels of 16 bytes in a row; the other warp finds none of its own.
    assert (facts["texture_load_requests"], facts["texture_load_sectors"]) == (2, 16)
    assert (facts["global_load_requests"], facts["global_load_sectors"]) == (2, 8)


@pytest.mark.in_turns(20)
@needs_compiler
@each_arch
def test_what_nothing_has_written_and_what_is_no_texture_is_reported(arch: str) -> None:
    device = EmulatedDevice(arch)
    index, out = device.upload(np.zeros(LANES, np.int32)), device.allocate(16 * LANES)
    never = device.allocate(64)
    loaded = launched(device, "fetch_float4")
    for handle, kind, said in (
        (device.linear_texture(never), "unwritten", "16-byte read of global memory that nothing has written"),
        (0, "texture", "a fetch through 0, which is no texture object"),
        (77, "texture", "a fetch through 77, which is no texture object"),
        (2**32 - 1, "texture", "a fetch through 4294967295, which is no texture object"),
    ):
        seen = device.observe(loaded, Launch((np.uint64(handle), index, out), (1, 1, 1), (LANES, 1, 1)))
        assert [(hazard.kind, hazard.message) for hazard in seen.hazards] == [(kind, said)]
        assert seen.hazards[0].line > 0


def launched(device: EmulatedDevice, kernel: str) -> Any:
    zeros = np.zeros(4 * LANES, np.float32)
    done = run(kernel, (np.ones((1, 4), np.float32), np.zeros(LANES, np.int32), zeros), device)
    return device.load(done.artifact)


def test_a_texture_goes_with_its_memory() -> None:
    device = EmulatedDevice("sm_90")
    buffer, other = device.allocate(1024), device.allocate(1024)
    handle = device.linear_texture(buffer)
    assert handle == device.linear_texture(buffer)
    assert len({0, handle, device.linear_texture(buffer, 2), device.linear_texture(other)}) == 4
    device.free(buffer)
    assert device.linear_texture(device.allocate(512)) == handle


def test_the_table_of_textures_has_an_end() -> None:
    textures = TextureMap()
    handles = [textures.handle(512 * n, 1, 4, "f32") for n in range(1, Texture.COUNT)]
    assert sorted(handles) == list(range(1, Texture.COUNT))
    with pytest.raises(MemoryError, match="more than 1023 textures"):
        textures.handle(0, 1, 4, "f32")
    textures.forget(1024, 1536)
    assert textures.handle(0, 1, 4, "f32") == 2


def test_texel_0_lies_at_a_multiple_of_512_bytes() -> None:
    assert texels_of(Memory(512, 100), 4, "f32", 1000) == Texels(512, 6, 4, "f32")
    assert texels_of(Memory(512 + 48, 100), 4, "f32", 1000) == Texels(512, 9, 4, "f32")
    assert texels_of(Memory(4096 + 2, 10), 1, "u16", 6) == Texels(4096, 6, 1, "u16")
    assert texels_of(Window(Memory(512, 4096), 32, 64), 4, "f32", 6).nbytes == 96


@pytest.mark.parametrize(
    ("memory", "channels", "element", "said"),
    [
        (Memory(512, 64), 3, "f32", "a texel of 3 x f32"),
        (Memory(512, 64), 4, "f64", "a texel of 4 x f64"),
        (Memory(520, 64), 4, "f32", "must begin on a multiple of 16, not at"),
        (Memory(512, 15), 4, "f32", "a texture of 0 texels with 15 bytes"),
        (Memory(512 + 32, 15), 4, "f32", "a texture of 2 texels with 15 bytes"),
        (Memory(512 + 16, 16 * 1000), 4, "f32", "of 1001 texels .* there are 1 to 1000"),
    ],
)
def test_what_no_texture_can_cover_is_refused(memory: Memory, channels: int, element: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        texels_of(memory, channels, element, 1000)


class SmallTextures(EmulatedDevice):
    """Textures of 64 texels at most."""

    @property
    def most_texels(self) -> int:
        return 64


def test_a_matrix_has_a_texture_where_its_rows_begin_with_a_texel() -> None:
    device = SmallTextures("sm_90")
    whole = device.allocate(2048)
    assert isinstance(device, TextureDevice)
    assert matrix_texture(device, Window(whole, 0, 1024), 8) > 0
    assert matrix_texture(device, Window(whole, 16, 1008), 8) > 0
    for window, ld in (
        (Window(whole, 4, 512), 8),
        (Window(whole, 0, 512), 6),
        (Window(whole, 0, 12), 4),
        (Window(whole, 0, 0), 4),
        (Window(whole, 0, 1040), 8),
        (Window(whole, 16, 1024), 8),
    ):
        assert matrix_texture(device, window, ld) == 0
    cpu = CpuDevice()
    assert matrix_texture(cpu, cpu.allocate(1024), 8) == 0


@pytest.mark.in_turns(20)
def test_an_array_that_no_texture_lies_over_is_refused() -> None:
    for array in (np.ones((4, 3), np.float32), np.ones(4, np.float64), np.ones((2, 2, 4), np.float32)):
        with pytest.raises(ArgumentTypeError, match=r"fetch_float: argument 1 .* a texture lies over float32"):
            run("fetch_float", (array, INDEX, np.zeros(LANES, np.float32)), "emulated")
