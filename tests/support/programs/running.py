"""Running a group of programs: on the host, compiled by g++, and on a device from machine code."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gemmlab.core.program import Artifact, Launch, Program
from gemmlab.devices.device import CountingDevice, Device
from gemmlab.toolchain import compilation
from support.programs.program import RESULTS, THREADS, WORDS, Group

Words = npt.NDArray[np.uint32]
Results = list[tuple[npt.NDArray[np.uint64], Words]]
"""For each program what it gives, (`THREADS`, `RESULTS`) of uint64, and the data as it left them."""
HOST_FLAGS = ("-std=c++17", "-O0", "-w", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing")
_MAIN = """
#include <cstdio>
int main() {{
  static u32 data[THREADS * WORDS];
  static u64 results[THREADS * RESULTS];
  void (*const programs[])(u32*, u64*) = {{{names}}};
  for (auto program : programs) {{
    if (fread(data, sizeof data, 1, stdin) != 1) return 1;
    program(data, results);
    fwrite(results, sizeof results, 1, stdout);
    fwrite(data, sizeof data, 1, stdout);
  }}
}}
"""


def host_compiler() -> str | None:
    return shutil.which("g++")


def run_on_host(group: Group, data: Sequence[Words], folder: Path, flags: Sequence[str] = HOST_FLAGS) -> Results:
    """What g++'s code gives. Raises `CalledProcessError` where it does not compile or breaks."""
    source, program = folder / "programs.cpp", folder / "programs"
    source.write_text(group.text + _MAIN.format(names=", ".join(group.names)))
    compiler = host_compiler()
    assert compiler is not None
    subprocess.run([compiler, *flags, str(source), "-o", str(program)], check=True)
    given = b"".join(each.tobytes() for each in data)
    made = subprocess.run([str(program)], input=given, stdout=subprocess.PIPE, check=True, timeout=60).stdout
    sizes = 8 * THREADS * RESULTS, 4 * THREADS * WORDS
    found: Results = []
    for start in range(0, len(made), sum(sizes)):
        results = np.frombuffer(made, np.uint64, sizes[0] // 8, start).reshape(THREADS, RESULTS)
        left = np.frombuffer(made, np.uint32, sizes[1] // 4, start + sizes[0]).reshape(THREADS, WORDS)
        found.append((results, left))
    return found


def compile_group(group: Group, arch: str, options: Sequence[str] = ()) -> Artifact:
    """Machine code of all programs, kept in no cache; floats are not contracted, as on the host."""
    defines = ("-DDEBUG_BUILD",) if "--device-debug" in options else ()
    program = Program(
        kernel="programs", language="cuda", target=arch, entry=group.names[0], fingerprint="",
        emit=lambda: group.text, options=("--fmad=false", *defines, *options),
    )  # fmt: skip
    return compilation.compile_cubin(program)


def run_on_device(group: Group, artifact: Artifact, data: Sequence[Words], device: Device) -> tuple[Results, list[str]]:
    """What the programs give there, and the hazards that were noticed."""
    found: Results = []
    hazards: list[str] = []
    for name, words in zip(group.names, data, strict=True):
        loaded = device.load(replace(artifact, kernel=name, entry=name))
        results, left = np.zeros((THREADS, RESULTS), np.uint64), words.copy()
        buffers = [device.upload(left), device.upload(results)]
        request = Launch(tuple(buffers), (1, 1, 1), (THREADS, 1, 1))
        if isinstance(device, CountingDevice):
            hazards += [f"{name}: {hazard.explain()}" for hazard in device.observe(loaded, request).hazards]
        else:
            device.launch(loaded, request)
        device.download(buffers[0], left)
        device.download(buffers[1], results)
        for buffer in buffers:
            device.free(buffer)
        found.append((results, left))
    return found, hazards


def differences(group: Group, first: Results, second: Results) -> list[str]:
    """Where two runs of a group differ: program, thread, which result; the first place of each program."""
    found = []
    for name, *pairs in zip(group.names, first, second, strict=True):
        for what, (a, b) in zip(("result", "data"), zip(*pairs, strict=True), strict=True):
            wrong = np.argwhere(a != b)
            if len(wrong):
                thread, index = wrong[0]
                values = f"{int(a[thread, index]):#x} and {int(b[thread, index]):#x}"
                found.append(f"{name}: thread {thread}, {what} {index}: {values}; {len(wrong)} in all")
                break
    return found
