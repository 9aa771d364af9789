"""Files as people publish them: code for the host, kernels in headers, headers that are not here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import gemmlab
from gemmlab.cli.app import build_app
from gemmlab.core.errors import CompileError, UsageError
from gemmlab.devices.select import open_device
from gemmlab.kernels.catalog import all_kernels
from gemmlab.kernels.cuda_file.device_code import device_code
from gemmlab.kernels.cuda_file.host_code import CodeText, without_host_code
from gemmlab.kernels.user_kernel import user_kernel
from gemmlab.ops.gemm import GemmOp
from gemmlab.verify.check import check_kernel
from support.cuda_source import needs_compiler
from support.paths import DATA
from support.users_files import kernel_of

FILE = DATA / "user_kernels" / "as_published.cu"
FLAGS: dict[str, Any] = {
    "kernel": "mine::sgemm", "grid": "ceil_div(N, 16), ceil_div(M, 16)", "threads": "16, 16",
}  # fmt: skip
KERNEL = 'extern "C" __global__ void k(float* p) { p[threadIdx.x] = VALUE; }\n'


def run(*arguments: str) -> Any:
    return CliRunner().invoke(build_app(), list(arguments))


def test_only_what_a_device_needs_is_left_and_lines_stay() -> None:
    text = FILE.read_text()
    (left,) = without_host_code([CodeText(text)])
    assert [len(line) for line in left.split("\n")] == [len(line) for line in text.split("\n")]
    for name in ("main(", "PYBIND11", "BINDING(zero_float", "Options", "ceil_div", "check(cudaError_t", "kUnused"):
        assert name not in left.replace("#define CHECK(call) check(", "")
    for name in ("T product(", "int helper(", "constexpr int kTile", "sum = -INFINITY", "#ifdef TIMED"):
        assert name in left


def test_a_file_without_host_code_is_the_same_text() -> None:
    for kernel in all_kernels():
        if kernel.device == "cuda":
            text = kernel.path.read_text()
            assert without_host_code([CodeText(text)]) == [text]
    # Functions without a mark are for the GPU unless a host alone could run them.
    plain = "float twice(float x) { return 2 * x; }\nint unused() { return 1; }\n" + KERNEL
    assert without_host_code([CodeText(plain)]) == [plain]


@pytest.mark.parametrize(
    ("host", "kept"),
    [
        ("int main() {}", ""),
        ("int main() {}", "int used(int a) { return a; }\n__device__ int b() { return used(1); }"),
        ("int main() {}\nint unused(int a) { return a; }", "__device__ int unused;"),
        ("int main() {}", "enum { FOUR = 4 };\n__device__ int four = FOUR;"),
        ("int main() {}\nstruct Timer { cudaEvent_t start; };", "struct Pair { int a; };\n__device__ Pair pair;"),
        ("int main() {}", "#define DEV __device__ inline\nDEV int f() { return 1; }"),
        ("int main() { auto f = [](int a) { return a; }; }", "using T = float;\n__device__ T t;"),
        ("int main() {}\nusing namespace torch::indexing;", "using namespace nvcuda;"),
        ("int main() {}\nnamespace py = pybind11;", "namespace cg = mine::groups;\n__device__ cg::block* block;"),
        ("std::vector<int> A = {1, 2};\nint main() {}", "__constant__ float A2[4] = {1, 2};"),
        ("int main() {}", "#define MAKE(T) __global__ void of_##T(T* p) { *p = 1; }\nMAKE(float)\nMAKE(int)"),
        (
            "int main() {}",
            "template <int N> struct Tile { static constexpr int n = N; };\n__device__ int t = Tile<4>::n;",
        ),
        ("void p(std::ofstream&);", ""),
        ("void f(std::vector<float>&);", "constexpr int g(int a) { return a; }\n__device__ int b = g(1);"),
        ("using std::cout;", "using std::min;\n__device__ int c = min(1, 2);"),
        ("static std::mt19937 rng;", "static const int tile = 4;\n__device__ int d[tile];"),
        ("struct S { std::string name; };\nbool operator<(S a, S b) { return true; }", "struct T {};\n__device__ T e;"),
        ("inline int f(int a) { if (a) throw a; return a; }", "enum { ONE = 1 };\n__device__ int h = ONE;"),
        ("typedef std::vector<float> Vec; using Map = std::map<int, Vec>;\nstatic_assert(sizeof(Vec) > 1);", ""),
        ("using namespace unheard::of;\nstd::string name(Vector of);", "using namespace std;"),
        ("__host__ int first(int a) { return a; }", "__host__ __device__ int second(int a) { return a; }"),
        ("void only_a_host(cudaStream_t stream);", "typedef void (*Call)(int);\n__device__ Call call;"),
        ("int main() {}", ("template <int N> constexpr int of = N;\ntemplate <> constexpr int of<1> = 2;\n"
         "__device__ int third = of<1>;")),
        ("int main() {}", ("template <class T> constexpr int bits();\n"
         "template <> constexpr int bits<float>() { return 32; }\n__device__ int fourth = bits<float>();")),
        ("int main() {}", ("constexpr int twice(int x) { return 2 * x; }\n"
         "__device__ int each(int f(int)) { return f(1); }\n__device__ int fifth() { return each(twice); }")),
        ("int main() {}", ("template <class T> struct Inner;\ntemplate <class T> struct Nested<Inner<Inner<T> > > {};\n"
         "__device__ Nested<Inner<int> > sixth;")),
    ],
)  # fmt: skip
def test_each_kind_of_definition(host: str, kept: str) -> None:
    (left,) = without_host_code([CodeText(f"{host}\n{kept}\n{KERNEL}")])
    assert left.split() == f"{kept}\n{KERNEL}".split()


def test_types_of_the_named_instance_stay() -> None:
    text = "struct Small { int edge; };\nstruct Large { int edge; };\nint main() {}\n" + KERNEL
    assert "Small" in without_host_code([CodeText(text)], "tile<Small>")[0]
    assert "Large" not in without_host_code([CodeText(text)], "tile<Small>")[0]


def test_what_one_file_needs_stays_in_the_others() -> None:
    main = CodeText('#include "own.cuh"\nint main() {}\n__device__ int a = DOUBLE(2);\nMARKED void f() {}\n')
    own = CodeText(
        "#define DOUBLE(x) twice(x)\n#define MARKED __device__\nconstexpr int twice(int x) { return 2 * x; }\n"
        "void print(Matrix of);\n"
    )
    left = without_host_code([main, own])
    assert "main" not in left[0]
    assert "MARKED void f() {}" in left[0]
    assert "int twice(int x)" in left[1]
    assert "print" not in left[1]


def test_a_library_for_nvrtc_loses_only_what_a_host_alone_compiles(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "config.h").write_text("#ifdef __CUDACC_RTC__\n#define LIBRARY __device__\n#endif\n")
    (tmp_path / "deep" / "all.h").write_text(
        '#include "deep/config.h"\n#include <iostream>\nstruct Unnamed { int a; };\nint unmarked(int a) { return a; }\n'
        "std::ostream& operator<<(std::ostream& to, Unnamed of);\n"
    )
    text = "#include <deep/all.h>\nint main() {}\nLIBRARY int f() { return 1; }\n"
    code = device_code(text, "", [f"-I{tmp_path}"])
    assert code.text.split("\n")[1:] == [" " * 13, "LIBRARY int f() { return 1; }", ""]
    assert set(code.headers) == {"deep/all.h"}
    assert "Unnamed { int a; }" in code.headers["deep/all.h"]
    assert "unmarked" in code.headers["deep/all.h"]
    assert "ostream&" not in code.headers["deep/all.h"]


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_file_and_a_header_that_declare_host_things_without_calls_go_through() -> None:
    for kernel in (kernel_of("declares_host"), kernel_of("includes_kernels")):
        report = check_kernel(kernel, open_device("emulated"), GemmOp(), cases=GemmOp().parse_sizes("20x33x7"))
        assert report.passed, report.explain()


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_kernel_of_a_header_is_launched_by_the_names_of_its_arguments() -> None:
    a = np.eye(4, dtype=np.float32)
    given = {"M": 4, "N": 4, "K": 4, "A": a, "B": a * 3, "C": a * 0}
    file = FILE.with_name("includes_kernels.cu")
    done = gemmlab.launch(file, "tiled<8>", 1, (8, 8), given, device="emulated")
    assert isinstance(done.outputs, dict)
    assert (done.outputs["C"] == 3 * a).all()
    with pytest.raises(CompileError, match="no kernel named 'tile' in the source; there are tiled, scaled"):
        gemmlab.launch(file, "tile", 1, 1, given, device="emulated")


def test_several_kernels_of_headers_are_listed_with_their_places() -> None:
    file = FILE.with_name("includes_kernels.cu")
    with pytest.raises(
        UsageError, match=r"several kernels; .*\(includes_kernels.cuh: line 4: tiled\(.*line 12: scaled"
    ):
        user_kernel(file, grid="1", threads="32")
    with pytest.raises(
        UsageError, match=r"no kernel named 'other' in includes_kernels.cu \(includes_kernels.cuh: line"
    ):
        user_kernel(file, grid="1", threads="32", kernel="other")


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_published_file_goes_through_check_and_launch_as_it_is() -> None:
    report = check_kernel(user_kernel(FILE, **FLAGS), open_device("emulated"), GemmOp())
    assert report.passed, report.explain()
    a = np.eye(4, dtype=np.float32)
    given = {"M": 4, "N": 4, "K": 4, "A": a, "B": a * 3, "C": a * 0}
    done = gemmlab.launch(FILE, "mine::sgemm", 1, (16, 16), given, device="emulated")
    assert isinstance(done.outputs, dict)
    assert (done.outputs["C"] == 3 * a).all()


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_planted_error_in_it_is_found_in_its_line(tmp_path: Path) -> None:
    file = tmp_path / "as_published.cu"
    file.write_text(FILE.read_text().replace("col >= N) return", "col > N) return"))
    report = check_kernel(user_kernel(file, **FLAGS), open_device("emulated"), GemmOp())
    assert not report.passed
    line = 1 + FILE.read_text().split("\n").index(next(s for s in FILE.read_text().split("\n") if "for (int k" in s))
    assert f"as_published.cu:{line}" in report.explain()


def test_headers_that_are_not_there_are_empty_but_for_those_of_cuda(tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text(
        "#include <deep/host.h>\nint main2() { cudaFree(0); return 0; }\n__device__ int x;\n"
    )
    names = ('"own.h"', '"lacking.h"', '"cublasLt.h"', "<cute/tensor.hpp>", "<boost/any.hpp>", "<mma.h>")
    text = "".join(f"#include {name}\n" for name in names)
    (tmp_path / "k.cu").write_text(text)
    code = device_code(text, str(tmp_path / "k.cu"), ())
    assert set(code.headers) == {"own.h", "deep/host.h", "boost/any.hpp", "cublasLt.h"}
    assert "cudaFree" not in code.headers["own.h"]


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize(
    ("headers", "value"),
    [
        ("", "INFINITY > 1 ? uint32_t(2) : 0"),
        ("cmath", "std::exp(0.0f) + std::isnan(1.0f) + (float)M_2_PI"),
        ("algorithm", "std::max(std::min(4, 3), 2) + std::clamp(5, 1, 2)"),
        ("tuple", "std::get<1>(std::make_tuple(1, 2.5f))"),
        ("type_traits,limits", "std::is_same<int, int>::value + std::numeric_limits<float>::max()"),
        ("utility,array", "std::array<float, 2>{1, 2}[1] + std::make_pair(1, 2).second"),
        ("cub/cub.cuh", "cub::WarpReduce<float>(*reinterpret_cast<cub::WarpReduce<float>::TempStorage*>(p)).Sum(1.0f)"),
        ("cooperative_groups.h", "cooperative_groups::this_thread_block().size()"),
        ("cstdint,climits", "std::uint8_t(300) + (SIZE_MAX > LONG_MAX) + int_fast16_t(3)"),
        ("no_such_library", "1"),
        ("thrust/device_vector.h,thrust/sort.h,thrust/pair.h", "thrust::pair<int, int>{1, 2}.second"),
        ("cub/device/device_reduce.cuh,curand.h,cudaTypedefs.h,driver_types.h", "1"),
        ("vector_functions.h,crt/math_functions.h", "make_float4(1, 2, 3, 4).w"),
    ],
)
def test_headers_that_kernels_include(headers: str, value: str) -> None:
    includes = "".join(f"#include <{name}>\n" for name in headers.split(",") if name)
    compiled = gemmlab.launch(
        includes + KERNEL.replace("VALUE", value), "k", 1, 32, [np.zeros(512, np.float32)], device="emulated"
    )
    assert compiled.artifact.entry == "k"


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("arch", ["sm_75", "sm_86", "sm_87"])
def test_other_architectures_run(arch: str) -> None:
    report = check_kernel(user_kernel(FILE, **FLAGS), open_device(f"emulated:{arch}"), GemmOp(),
                          cases=GemmOp().parse_sizes("20x33x7"))  # fmt: skip
    assert report.passed, report.explain()
    assert report.device == f"emulated:{arch}"


@pytest.mark.in_turns(20)
@needs_compiler
@pytest.mark.parametrize("device", ["emulated", "emulated:sm_90", "emulated:sm_90a", open_device("emulated:sm_90")])
def test_source_is_compiled_for_the_architecture_asked_for(device: Any) -> None:
    source = KERNEL.replace("{", '{ asm volatile("setmaxnreg.inc.sync.aligned.u32 64;");').replace("VALUE", "1")
    done = gemmlab.launch(source, "k", 1, 128, [np.zeros(128, np.float32)], device=device, arch="sm_90a")
    assert (done.artifact.target, done.hazards) == ("sm_90a", ())
    with pytest.raises(UsageError, match="runs code for sm_90, not for sm_80"):
        gemmlab.launch(KERNEL.replace("VALUE", "1"), "k", 1, 32, [None], device="emulated:sm_90", arch="sm_80")


@pytest.mark.in_turns(20)
@needs_compiler
def test_a_header_of_your_own_that_is_not_found_is_named_with_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "mine.cu"
    file.write_text('#include "lacking.h"\n' + KERNEL.replace("VALUE", "1"))
    with pytest.raises(CompileError, match=r'"lacking.h"[\s\S]*of other headers with -I'):
        gemmlab.launch(file, "k", 1, 32, [np.zeros(32, np.float32)], device="emulated")


@pytest.mark.in_turns(20)
@needs_compiler
def test_kernel_names_a_function_for_every_verb_and_cuh_files_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "tile.cuh"
    file.write_text("template <int N> __global__ void tile(float* p) { p[N] = 1; }\n")
    for flag in ("--kernel", "--instance"):
        result = run("compile", str(file), flag, "tile<3>", "--json")
        assert json.loads(result.stdout)["kernels"][0]["instance"] == "tile<3>"
