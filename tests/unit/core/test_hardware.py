from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.core import cpu_facts as facts
from gemmlab.core import hardware
from gemmlab.core.cpu_info import DEFAULT_CACHES, Cache, CpuInfo
from gemmlab.core.hardware import cpu_info, physical_cores, read_linux
from gemmlab.core.hardware_macos import read_macos

CPU = "/sys/devices/system/cpu"


def cache_files(cpu: int, *levels: tuple[int, str, str, int, str]) -> dict[str, str]:
    files: dict[str, str] = {}
    for index, (level, kind, size, ways, sharers) in enumerate(levels):
        base = f"{CPU}/cpu{cpu}/cache/index{index}/"
        files |= {
            base + "level": f"{level}\n", base + "type": f"{kind}\n", base + "size": f"{size}\n",
            base + "ways_of_associativity": f"{ways}\n", base + "coherency_line_size": "64\n",
            base + "shared_cpu_list": f"{sharers}\n",
        }  # fmt: skip
    return files


def siblings(*lists: str) -> dict[str, str]:
    return {f"{CPU}/cpu{cpu}/topology/thread_siblings_list": text + "\n" for cpu, text in enumerate(lists)}


EMERALD_RAPIDS = {
    "/proc/cpuinfo": """processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 207
model name\t: Intel(R) Xeon(R) Processor
stepping\t: 2
cpu MHz\t\t: 2100.000
cache size\t: 307200 KB
flags\t\t: fpu sse sse2 fma avx hypervisor avx2 avx512f avx512dq avx512bw avx512vl avx512_bf16 amx_tile

processor\t: 1
model\t\t: 1
""",
    **cache_files(0, (1, "Data", "48K", 12, "0"), (1, "Instruction", "32K", 8, "0"), (2, "Unified", "2048K", 16, "0"),
                  (3, "Unified", "307200K", 20, "0-1")),
    **siblings("0", "1"),
}  # fmt: skip
ZEN5 = {
    "/proc/cpuinfo": """processor : 0
vendor_id : AuthenticAMD
cpu family : 26
model : 2
model name : AMD EPYC 9575F 64-Core Processor
stepping : 1
cpu MHz : 3298.111
flags : fpu sse sse2 avx avx2 fma avx512f avx512vl
""",
    f"{CPU}/cpu2/cpufreq/cpuinfo_max_freq": "5008000\n",
    f"{CPU}/cpu2/cpufreq/scaling_cur_freq": "3300000\n",
    **cache_files(2, (1, "Data", "48K", 12, "2,66"), (2, "Unified", "1024K", 16, "2,66"),
                  (3, "Unified", "32768K", 16, "0-7,64-71")),
    f"{CPU}/cpu2/topology/thread_siblings_list": "2,66",
    f"{CPU}/cpu3/topology/thread_siblings_list": "3,67",
    f"{CPU}/cpu66/topology/thread_siblings_list": "2,66",
}  # fmt: skip
NEOVERSE_V1 = {
    "/proc/cpuinfo": """processor\t: 0
BogoMIPS\t: 2100.00
Features\t: fp asimd evtstrm aes asimdhp cpuid asimddp sve i8mm bf16
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd40
CPU revision\t: 1

""",
    **cache_files(0, (1, "Data", "64K", 4, "0"), (1, "Instruction", "64K", 4, "0"), (2, "Unified", "1024K", 8, "0"),
                  (3, "Unified", "32768K", 16, "0-3")),
}  # fmt: skip


def read(files: Mapping[str, str], machine: str, *cpus: int) -> CpuInfo:
    return read_linux(files.get, machine, frozenset(cpus))


def test_an_intel_server_in_a_virtual_machine() -> None:
    info = read(EMERALD_RAPIDS, "x86_64", 0, 1)
    assert (info.vendor, info.family, info.model, info.stepping) == ("GenuineIntel", 6, 207, 2)
    assert (info.lanes, info.fma_units) == (16, 2)
    assert (info.l1d_bytes, info.l2_bytes) == (48 << 10, 2 << 20)
    last = info.cache(3)
    assert last
    assert last.size_bytes == 300 << 20
    assert (last.ways, last.line_bytes, last.shared_by, last.source) == (20, 64, 2, "sysfs")
    assert (info.physical_cores, info.logical_cpus, info.cpu_quota) == (2, 2, None)
    assert (info.nominal_ghz, info.current_ghz, info.max_ghz) == (None, 2.1, None)
    assert "not the core clock" in info.clock_source
    assert info.hypervisor
    assert info.peak_gflops == pytest.approx(134.4)
    assert info.features >= {"avx512f", "amx_tile"}


def test_an_amd_server_of_which_some_cpus_may_be_used() -> None:
    info = read(ZEN5, "x86_64", 2, 3, 66)
    assert (info.name, info.slug) == ("AMD EPYC 9575F 64-Core Processor", "amd-26-2")
    assert (info.lanes, info.fma_units, info.fma_rule) == (16, 2, "Zen 5: 2 x 512 bits")
    assert (info.max_ghz, info.current_ghz, info.clock_source) == (5.008, 3.3, "cpufreq")
    assert info.clock_ghz == 5.008
    assert (info.physical_cores, info.logical_cpus) == (2, 3)
    assert info.cache(3) == Cache(3, 32 << 20, 16, 64, 16, "sysfs")
    assert not info.hypervisor


def test_an_arm_server_has_no_clock_to_read() -> None:
    info = read(NEOVERSE_V1, "aarch64", 0, 1, 2, 3)
    assert (info.arch, info.vendor, info.name, info.model) == ("aarch64", "ARM", "Neoverse V1", 0xD40)
    assert (info.lanes, info.fma_units, info.fma_rule) == (4, 4, "Neoverse V1: 4 x 128 bits")
    assert (info.clock_ghz, info.peak_gflops, info.clock_source) == (None, None, "unknown")
    assert info.l1d_bytes == 64 << 10
    assert info.physical_cores == 4
    assert "sve" in info.features


def test_a_system_that_says_nothing_gets_the_stated_defaults() -> None:
    info = read({}, "riscv64", 0)
    assert (info.arch, info.vendor, info.lanes, info.fma_units) == ("riscv64", "unknown", 4, 2)
    assert "assumed" in info.fma_rule
    assert {c.level: (c.size_bytes, c.ways) for c in info.caches} == DEFAULT_CACHES
    assert {c.source for c in info.caches} == {"assumed"}
    assert (info.physical_cores, info.logical_cpus) == (1, 1)


def test_no_third_level_is_invented_beside_a_known_second() -> None:
    files = cache_files(0, (1, "Data", "32K", 8, "0"), (2, "Unified", "1024K", 16, "0"))
    assert read(files, "x86_64", 0).cache(3) is None


def test_a_cache_without_a_size_falls_back_alone() -> None:
    files = NEOVERSE_V1 | {f"{CPU}/cpu0/cache/index2/size": ""}
    info = read(files, "aarch64", 0)
    assert [(c.level, c.source) for c in info.caches] == [(1, "sysfs"), (2, "assumed"), (3, "sysfs")]


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1.5),
        ({"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/cpu.max": "50000 100000\n",
          "/sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 0.5),
        ({"/proc/self/cgroup": "0::/../x\n", "/sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2.0),
        ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"/proc/self/cgroup": "3:cpu,cpuacct:/d\n0::/\n", "/sys/fs/cgroup/cpu/d/cpu.cfs_quota_us": "300000\n",
          "/sys/fs/cgroup/cpu/d/cpu.cfs_period_us": "100000\n"}, 3.0),
        ({"/proc/self/cgroup": "1:cpu:/\n", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
          "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"/sys/fs/cgroup/cpu.max": "garbage\n"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_the_tightest_quota_of_the_control_groups_counts(files: dict[str, str], quota: float | None) -> None:
    assert hardware.read_quota(files.get) == quota


def test_a_quota_limits_cores_to_at_least_one() -> None:
    group = {"/proc/self/cgroup": "0::/\n"}
    files = EMERALD_RAPIDS | group
    assert read(files | {"/sys/fs/cgroup/cpu.max": "150000 100000"}, "x86_64", 0, 1).physical_cores == 1
    assert read(files | {"/sys/fs/cgroup/cpu.max": "10000 100000"}, "x86_64", 0, 1).logical_cpus == 1
    assert read(files | {"/sys/fs/cgroup/cpu.max": "900000 100000"}, "x86_64", 0, 1).physical_cores == 2


@given(st.sets(st.integers(0, 300), min_size=1, max_size=40))
def test_cpu_lists_are_read_back(cpus: set[int]) -> None:
    ranges: list[list[int]] = []
    for cpu in sorted(cpus):
        if ranges and ranges[-1][1] == cpu - 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    text = ",".join(f"{a}-{b}" if a != b else str(a) for a, b in ranges)
    assert facts.parse_cpu_list(text + "\n") == cpus


@pytest.mark.in_turns(20)
@given(st.text(max_size=5))
def test_malformed_texts_raise_nothing(text: str) -> None:
    facts.parse_cpu_list(text)
    facts.parse_size(text)
    facts.parse_cpuinfo(text)
    facts.parse_int(text)
    facts.group_quota([(text, text)])
    facts.group_paths(text)
    read_linux(lambda _path: text, "x86_64", frozenset({0}))


@pytest.mark.parametrize(
    ("text", "size"), [("48K", 49152), ("2M", 2 << 20), ("512", 512), ("1G", 1 << 30), ("x", None), ("", None)]
)
def test_cache_sizes(text: str, size: int | None) -> None:
    assert facts.parse_size(text) == size


def test_the_advertised_clock() -> None:
    assert facts.advertised_ghz("Intel(R) Xeon(R) Platinum 8175M CPU @ 2.50GHz") == 2.5
    assert facts.advertised_ghz("AMD EPYC 9575F") is None


def test_a_mac() -> None:
    table: dict[str, int | str] = {
        "hw.optional.arm64": 1, "machdep.cpu.brand_string": "Apple M2", "hw.cachelinesize": 128,
        "hw.perflevel0.l1dcachesize": 131072, "hw.l1dcachesize": 65536, "hw.perflevel0.l2cachesize": 16 << 20,
        "hw.perflevel0.cpusperl2": 4, "hw.perflevel0.physicalcpu": 4, "hw.logicalcpu": 8,
    }  # fmt: skip
    info = read_macos(table.get)
    assert (info.arch, info.vendor, info.name, info.lanes, info.fma_units) == ("aarch64", "Apple", "Apple M2", 4, 4)
    assert (info.l1d_bytes, info.l2_bytes, info.cache(3)) == (131072, 16 << 20, None)
    assert (info.physical_cores, info.logical_cpus) == (4, 8)
    assert read_macos(lambda _name: None).l2_bytes == DEFAULT_CACHES[2][0]


def test_this_machine_is_read_quickly_and_once() -> None:
    times = []
    for _ in range(5):
        cpu_info.cache_clear()
        start = time.perf_counter()
        info = cpu_info()
        times.append(time.perf_counter() - start)
    assert min(times) < 5e-3
    assert cpu_info() is info
    assert info.l1d_bytes > 0
    assert info.lanes in (4, 8, 16)
    assert 1 <= physical_cores() <= info.logical_cpus
    data = info.to_json()
    assert data["features"] == sorted(info.features)
    assert data["caches"][0]["level"] == 1


def test_nothing_but_the_standard_library_is_imported() -> None:
    code = (
        "import sys, gemmlab; had = set(sys.modules); import gemmlab.core.hardware as h; h.cpu_info(); "
        "print(*set(sys.modules) - had)"
    )
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert "gemmlab" in loaded
    assert loaded <= sys.stdlib_module_names | {"gemmlab"}
    assert not loaded & {"platform", "subprocess"}
