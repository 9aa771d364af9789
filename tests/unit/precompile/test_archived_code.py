"""Code whose main loops are written anew: what the archive has, who gets it, and that nobody else's is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gemmlab.core.errors import NoCompilerError, UsageError
from gemmlab.core.program import Program
from gemmlab.devices.poisoned import PoisonedDevice
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.cuda_file.header import HeaderValues, read_header
from gemmlab.kernels.cuda_file.header_facts import read_facts
from gemmlab.precompile.archived_code import archive_code, written_anew
from gemmlab.sass.checking.control_codes import check_function
from gemmlab.sass.checking.register_room import excess
from gemmlab.sass.parse import parse
from gemmlab.toolchain import build_cuda, code_archive, nvdisasm, shipped_code
from gemmlab.toolchain.cubin import read_cubin
from gemmlab.verify.changed_code import build_of
from support.cuda_source import needs_compiler

ARCH = "sm_90"


@pytest.fixture(autouse=True)
def _archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(code_archive.SWITCH, raising=False)


def programs(arch: str = ARCH) -> list[Program]:
    kernel = find_kernel("peak_simt")
    return [kernel.program(instance, arch) for instance in kernel.instances(kernel.configure({}))]


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_the_archive_has_what_is_made_of_the_compilers_code(number: int) -> None:
    """A change of the planner is not seen by the archive's keys."""
    program = programs()[number]
    kept, made = build_cuda.archived(program), archive_code(program)
    assert kept is not None
    if kept.compiler == made.compiler:
        assert kept.digest == made.digest, "remove peak_simt.xz and its entry of the index, then makers/gpu_code.py"
    assert made.digest != build_cuda.compile_here(program)[0].digest


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("number", range(4))
def test_its_control_codes_are_sound(number: int) -> None:
    artifact = build_cuda.build(programs()[number])
    (function,) = parse(artifact.texts["sass"]).values()
    assert check_function(function, ARCH) == ()
    stated = read_cubin(artifact.code, "peak_simt").functions[function.name].registers
    assert stated == artifact.resources["registers"] == 254
    assert excess(function, ARCH, stated) is None
    assert artifact.resources["spill_loads"] == artifact.resources["spill_stores"] == 0


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("size", ["128x256x32:nn", "130x250x33:nt"])
def test_nothing_is_read_too_early_that_the_compiler_does_not(size: str) -> None:
    """Poison follows one path of the compiler's stores, under a predicate, on which no barrier is held."""
    made = build_of(find_kernel("peak_simt"), ARCH, size, {})
    anew, found = build_cuda.build(made.kernel.program(made.instance, ARCH)), []
    for code in (made.artifact.code, anew.code):
        device = PoisonedDevice(ARCH, warps=1)
        made.run(code, device)
        found.append({(one.producer, one.consumer) for one in device.found})
    assert found[1] <= found[0]


@pytest.mark.in_turns(20)
@needs_compiler
def test_the_emulator_runs_the_archives_code_and_the_compilers_if_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    program, device = programs()[0], open_device(f"emulated:{ARCH}")
    compiled, kept = build_cuda.compile_here(program)[0], build_cuda.archived(program)
    assert kept is not None
    assert device.build(program).digest == kept.digest
    assert open_device("emulated:sm_80").build(replace(program, target="sm_80")).texts["ptx"]
    monkeypatch.setenv(code_archive.SWITCH, "1")
    assert device.build(program).digest == compiled.digest


@pytest.mark.in_turns(20)
@needs_compiler
def test_other_configurations_and_architectures_are_the_compilers() -> None:
    kernel = find_kernel("peak_simt")
    (other, *_) = kernel.instances(kernel.configure({"STAGES": 4}))
    for program in (kernel.program(other, ARCH), programs("sm_80")[0]):
        assert build_cuda.build(program).digest == build_cuda.compile_here(program)[0].digest
    assert not programs("sm_80")[0].written_anew


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_wheel_has_its_text_for_machines_without_a_disassembler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = programs()[0]
    build_cuda.ship(program, tmp_path)
    made = build_cuda.build(program)
    text = made.texts["sass"]

    def missing() -> str:
        raise NoCompilerError("no disassembler")

    monkeypatch.setattr(shipped_code, "FOLDER", tmp_path)
    monkeypatch.setattr(nvdisasm, "tool", missing)
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "cache"))
    found = build_cuda.build(program)
    assert (found.digest, found.texts["sass"]) == (made.digest, text)


def test_the_architectures_of_a_kernel_file_are_known_ones() -> None:
    text = 'grid = "1"\nthreads = "1"\nwritten_anew = ["sm_7"]'
    header = read_header("one.cu", f"/* gemmlab\n{text}\n*/\n")
    assert header is not None
    with pytest.raises(UsageError, match="written_anew: 'sm_7' is none of sm_"):
        read_facts(HeaderValues("one.cu", (header,)), "gemm")


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_without_such_a_loop_is_refused() -> None:
    kernel = find_kernel("thread_tile_2d")
    (first, *_) = kernel.instances(kernel.configure({}))
    artifact, _ = build_cuda.compile_here(kernel.program(first, ARCH))
    with pytest.raises(UsageError, match="no loop of one block with 16 x 8 x 8 FFMAs"):
        written_anew(artifact)
