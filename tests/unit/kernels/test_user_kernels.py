"""Kernels as people write them, unchanged: what is told from their text, what has to be said, what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import find_kernel
from gemmlab.kernels.fitting import with_factors
from gemmlab.kernels.user_kernel import starting_text, user_kernel
from gemmlab.ops.gemm import GemmOp, GemmProblem
from gemmlab.toolchain.build_cuda import build
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler
from support.users_files import FLAGS, FOLDER, kernel_of, launch_of

OP = GemmOp()
each_file = pytest.mark.parametrize("name", FLAGS)


def test_every_file_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.cu")} == set(FLAGS)


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90"])
@each_file
def test_it_compiles_as_it_is(name: str, arch: str) -> None:
    kernel = kernel_of(name)
    made = build(kernel.program(kernel.configure(), arch))
    assert made.resources["spill_stores"] == 0
    if name == "extern_c":
        assert made.entry == "gemm_kernel"


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("shape", [(64, 64, 64), (33, 35, 31), (128, 64, 16), (48, 48, 48), (5, 0, 3), (1, 1, 1)])
@each_file
def test_it_is_right_where_it_is_meant_to_be(name: str, shape: tuple[int, int, int]) -> None:
    kernel = kernel_of(name)
    _m, n, k = shape
    cases = [
        problem
        for alpha, beta in ((1.0, 0.0), (0.5, -1.0), (0.0, 1.0))
        for problem in (GemmProblem(*shape, alpha, beta), GemmProblem(*shape, alpha, beta, k + 1, n + 2, n + 3))
    ]
    cases = [with_factors(kernel, OP, case) for case in cases]
    refused = [kernel.refusal(kernel.configure(), OP.scalars(case)) for case in cases]
    if all(refused):
        with pytest.raises(UsageError, match="takes none of the sizes"):
            check_kernel(kernel, open_device("emulated"), OP, cases=cases)
        return
    report = check_kernel(kernel, open_device("emulated"), OP, cases=cases)
    assert report.passed, report.explain()
    assert report.cases == refused.count("")
    assert sum(report.refused.values()) == len(refused) - report.cases
    assert all(why in report.explain() for why in refused)


DEFAULTS = """
template <int TILE = 16, bool ROUNDED = false>
__global__ void product(const float* A, const float* B, float* C, int M, int N, int K) {
    const long long col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (long long k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = ROUNDED ? roundf(sum) : sum;
}
"""


def test_a_misspelt_counter_is_found_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    text = starting_text(path)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if each.startswith("expect"))
    path.write_text(text.replace("global_store_sectors_per", "global_store_sector_per"), encoding="utf-8")

    def nothing_runs(_done: int, _total: int) -> None:
        raise AssertionError

    said = f"mine.cu:{line}: expect: .*no value named 'global_store_sector_per_request'; did you mean global_store_sec"
    with pytest.raises(UsageError, match=said):
        check_kernel(user_kernel(path), open_device("emulated"), OP, progress=nothing_runs)


def test_parameters_are_template_arguments_or_macros() -> None:
    kernel = kernel_of("thread_tile")
    assert len(list(kernel.configurations())) > 1
    assert kernel.program(kernel.configure({"BM": 32, "BN": 32, "TM": 4}), "sm_90").entry.endswith("<32, 32, 8, 4>")
    with pytest.raises(UsageError, match=r"constraints: BM \* BK == BM \* BN // TM"):
        kernel.configure({"TM": 16})
    macro = kernel_of("column_major")
    program = macro.program(macro.configure({"BLOCK_SIZE": 32}), "sm_90")
    assert "-DBLOCK_SIZE=32" in program.options
    assert launch_of(macro, GemmProblem(17, 33, 5)).grid == (5, 3, 1)


GUARDED = "#ifndef EDGE\n#define EDGE 8\n#endif\n"
BY_WAY = """
__global__ void mine(const float* A, const float* B, float* C, int M, int N, int K)
{
    int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    float sum = 0.0f;
    if (row >= M || col >= N) return;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
"""


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("before", "header"),
    [
        (f"{GUARDED}#define TILE (EDGE)\n", ""),
        (f"{GUARDED}constexpr int TILE = EDGE;\n", ""),
        (f"{GUARDED}#if EDGE == 16\n#define TILE 16\n#else\n#define TILE 8\n#endif\n", ""),
        ('#include "tile.cuh"\n', f"{GUARDED}#define TILE EDGE\n"),
        ('#include "deep/first.cuh"\n', f"{GUARDED}constexpr int TILE = EDGE;\n"),
        (f'{GUARDED}#include "tile.cuh"\n', "#define TILE EDGE\n"),
    ],
)
def test_a_macro_that_only_another_one_names_is_defined(tmp_path: Path, before: str, header: str) -> None:
    (tmp_path / "common" / "deep").mkdir(parents=True)
    (tmp_path / "common" / "tile.cuh").write_text(header)
    (tmp_path / "common" / "deep" / "first.cuh").write_text('#include "../tile.cuh"\n')
    path = tmp_path / "mine.cu"
    path.write_text(before + BY_WAY)
    kernel = user_kernel(path, grid="ceil_div(N, EDGE), ceil_div(M, EDGE)", threads="EDGE, EDGE", params={"EDGE": 16},
                         options=["-Icommon"])  # fmt: skip
    assert "-DEDGE=16" in kernel.program(kernel.configure(), "sm_80").options
    assert check_kernel(kernel, open_device("emulated:sm_80"), OP, cases=[GemmProblem(33, 17, 5)]).passed


@pytest.mark.parametrize("where", ["mine.cu", "tile.cuh"])
def test_a_macro_that_another_one_names_needs_its_ifndef(tmp_path: Path, where: str) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(f'#include "tile.cuh"\n{BY_WAY}')
    (tmp_path / "tile.cuh").write_text("")
    (tmp_path / where).write_text("#define EDGE 8\n#define TILE EDGE\n" + (tmp_path / where).read_text())
    with pytest.raises(UsageError, match=r"params: EDGE is no parameter .* the file has no `#ifndef EDGE`"):
        user_kernel(path, grid="ceil_div(N, EDGE), M", threads="EDGE", params={"EDGE": 16})


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_template_whose_parameters_have_defaults_needs_no_instance(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    path.write_text(DEFAULTS, encoding="utf-8")
    kernel = user_kernel(path, grid="ceil_div(N, 16), ceil_div(M, 16)", threads="16, 16")
    assert kernel.program(kernel.configure(), "sm_90").entry == "product<>"
    assert check_kernel(kernel, open_device("emulated"), OP, cases=[GemmProblem(17, 33, 5)]).passed


def test_facts_come_from_header_toml_and_flags_in_this_order(tmp_path: Path) -> None:
    path = tmp_path / "mine.cu"
    body = "__global__ void mine(int N, float* A, float* B, float* C) {}\n"
    path.write_text('/* gemmlab\ngrid = "N"\nthreads = 1\nsummary = "from the header"\n*/\n' + body, encoding="utf-8")
    assert launch_of(user_kernel(path), GemmProblem(7, 7, 7)).grid == (7, 1, 1)
    (tmp_path / "mine.toml").write_text('grid = "2 * N"', encoding="utf-8")
    assert launch_of(user_kernel(path), GemmProblem(7, 7, 7)).grid == (14, 1, 1)
    assert user_kernel(path).summary == "from the header"
    (tmp_path / "other.toml").write_text('grid = "3 * N"', encoding="utf-8")
    assert launch_of(user_kernel(path, facts=tmp_path / "other.toml"), GemmProblem(7, 7, 7)).grid == (21, 1, 1)
    assert launch_of(user_kernel(path, grid="4 * N"), GemmProblem(7, 7, 7)).grid == (28, 1, 1)
    assert launch_of(find_kernel(str(path)), GemmProblem(7, 7, 7)).grid == (14, 1, 1)


def test_a_requirement_takes_the_place_of_what_is_implied() -> None:
    kernel = user_kernel(FOLDER / "extern_c.cu", grid="M", threads=256, require=["beta == 1"])
    assert [restriction.that.text for restriction in kernel.restrictions] == ["beta == 1"]


def test_headers_beside_the_file_are_found(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "square_only.cu", tmp_path / "square.cuh")
    path = tmp_path / "mine.cu"
    path.write_text('#include "square.cuh"\n__global__ void mine(int N, float* A, float* B, float* C) {}\n')
    kernel = user_kernel(path, grid=1, threads=1)
    assert kernel.program({}, "sm_90").path == str(path)
