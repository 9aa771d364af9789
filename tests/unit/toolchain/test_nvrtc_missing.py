"""Where compiler or disassembler are not there: what serves in their place, and what is said."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from gemmlab.core.errors import CompileError, NoCompilerError
from gemmlab.toolchain import nvdisasm, nvrtc
from gemmlab.toolchain.compilation import compile_cubin
from support.cuda_source import compiled, needs_compiler, program
from support.nvrtc_code import SOURCE


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """Nothing remembered of which compiler is installed, before and after; an empty cache."""
    monkeypatch.setenv("GEMMLAB_CACHE_DIR", str(tmp_path / "cache"))
    remembered = (nvrtc.compiler, nvrtc.architectures, nvrtc._load, nvdisasm.tool)
    for function in remembered:
        function.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    for function in remembered:
        function.cache_clear()


def install(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Pretend that these packages are installed, `_` for `-`, and no others; none can be loaded."""
    packages = {name.replace("_", "-"): version for name, version in versions.items()}
    monkeypatch.setattr(nvrtc, "_version", packages.get)
    monkeypatch.setattr(nvrtc, "_load", lambda: None)


@pytest.mark.parametrize(
    ("packages", "told"),
    [
        ({}, r"^no CUDA compiler: pip install 'gemmlab\[cuda13\]'"),
        ({"nvidia_cuda_nvrtc": "13.5.37"}, r"^no CUDA compiler: pip install 'gemmlab\[cuda13\]'"),
        ({"cuda_bindings": "13.5.0"}, r"^cuda-bindings 13\.5\.0 is here without NVRTC: .*'gemmlab\[cuda13\]'"),
        ({"cuda_bindings": "12.9.1"}, r"^cuda-bindings 12\.9\.1 is here without NVRTC: .*'gemmlab\[cuda12\]'"),
        ({"cuda_bindings": "13.5.0", "nvidia_cuda_nvrtc_cu12": "12.9.86"},
         (r"^cuda-bindings 13\.5\.0 needs NVRTC of CUDA 13, and here is nvidia-cuda-nvrtc-cu12 12\.9\.86: "
          r"pip install 'gemmlab\[cuda13\]', or 'cuda-bindings==12\.\*'$")),
        ({"cuda_bindings": "12.9.1", "nvidia_cuda_nvrtc": "13.5.37"},
         (r"^cuda-bindings 12\.9\.1 needs NVRTC of CUDA 12, and here is nvidia-cuda-nvrtc 13\.5\.37: "
          r"pip install 'gemmlab\[cuda12\]', or 'cuda-bindings==13\.\*'$")),
    ],
    ids=["nothing", "no bindings", "no compiler", "no compiler for 12", "compiler for 12", "compiler for 13"],
)  # fmt: skip
def test_a_missing_compiler_says_what_to_install(
    fresh: pytest.MonkeyPatch, packages: dict[str, str], told: str
) -> None:
    install(fresh, **packages)
    with pytest.raises(NoCompilerError, match=told):
        nvrtc.compiler()
    with pytest.raises(NoCompilerError, match=told):
        compile_cubin(program(SOURCE, "tile<16>"))


def test_on_a_mac_another_machine_compiles(fresh: pytest.MonkeyPatch) -> None:
    install(fresh)
    fresh.setattr(sys, "platform", "darwin")
    with pytest.raises(NoCompilerError, match="NVIDIA has none for macOS; run `gemmlab compile` on Linux or Windows"):
        nvrtc.compiler()


def test_the_compiler_is_named_without_loading_it(fresh: pytest.MonkeyPatch) -> None:
    install(fresh, cuda_bindings="12.9.1", nvidia_cuda_nvrtc_cu12="12.9.86", nvidia_cuda_nvrtc="13.5.37")
    assert nvrtc.compiler() == "NVRTC 12.9.86"
    with pytest.raises(NoCompilerError, match=r"NVRTC 12\.9\.86 is installed but cannot be loaded"):
        compile_cubin(program(SOURCE, "tile<16>"))


def test_a_toolkits_compiler_serves_where_no_wheel_does(fresh: pytest.MonkeyPatch) -> None:
    install(fresh, cuda_bindings="13.5.0")
    library = SimpleNamespace(nvrtcVersion=lambda: (0, 13, 0))
    fresh.setattr(nvrtc, "_load", lambda: library)
    assert nvrtc.compiler() == "NVRTC 13.0"


@needs_compiler
def test_without_a_disassembler_there_is_code_but_no_text_of_it(fresh: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise NoCompilerError("no nvdisasm")

    fresh.setattr(nvdisasm, "tool", none)
    made = compile_cubin(program(SOURCE, "tile<16>"))
    assert set(made.texts) == {"ptx", "log"}
    assert made.digest == compiled(SOURCE, "tile<16>").digest


def test_a_disassembler_on_the_path_serves_where_no_wheel_does(fresh: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fresh.setattr(nvdisasm, "_PACKAGES", ())
    fresh.setenv("PATH", str(tmp_path))
    with pytest.raises(NoCompilerError, match=r"no nvdisasm .*'gemmlab\[cuda13\]'"):
        nvdisasm.tool()
    (tmp_path / "nvdisasm").write_text("#!/bin/sh\necho text of $4 >&1\n")
    (tmp_path / "nvdisasm").chmod(0o755)
    assert nvdisasm.tool() == tmp_path / "nvdisasm"
    assert nvdisasm.disassemble(b"code", "k").startswith("text of /")


@needs_compiler
def test_what_cannot_be_disassembled_is_named() -> None:
    with pytest.raises(CompileError, match=r"^mine: nvdisasm cannot read the machine code: .*the cubin"):
        nvdisasm.disassemble(b"not a cubin", "mine")
