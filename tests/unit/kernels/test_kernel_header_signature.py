"""`__global__` functions found in the text of a file, in whatever manner they are written."""

from __future__ import annotations

import time

import pytest

from gemmlab.kernels.cuda_file.signature import TemplateParameter, signatures
from gemmlab.kernels.cuda_file.tokens import tokens


def found(text: str) -> list[str]:
    return [str(signature) for signature in signatures(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("__global__ void k() {}", "k()"),
        ("__global__ void k(void) {}", "k()"),
        ("__global__\nvoid\nk ( int  M )\n{}", "k(int M)"),
        ('extern "C" __global__ void k(int M) {}', "k(int M)"),
        ('extern "C" {\n__global__ void k(int M) {}\n}', "k(int M)"),
        ("static __global__ void __launch_bounds__(256, 2) k(int M) {}", "k(int M)"),
        ("__launch_bounds__(BM * (BN / 2)) __global__ void k(int M) {}", "k(int M)"),
        ("[[maybe_unused]] __global__ void k(int M) {}", "k(int M)"),
        ("__global__ void k(float *A, float* B, float * __restrict__ C) {}", "k(float* A, float* B, float* C)"),
        ("__global__ void k(const float *const __restrict__ A, float const* B) {}", "k(float* A, float* B)"),
        ("__global__ void k(float A[], const float B[16][16]) {}", "k(float* A, float* B)"),
        ("__global__ void k(unsigned n, unsigned int m, long long k, size_t) {}",
         "k(unsigned n, unsigned int m, long long k, size_t)"),
        ("__global__ void k(const int n = 3, float4* a = nullptr) {}", "k(int n, float4* a)"),
        ("namespace a { namespace b { __global__ void k(int M) {} } }", "a::b::k(int M)"),
        ("namespace a::b { __global__ void k(int M) {} }", "a::b::k(int M)"),
        ("namespace { __global__ void k(int M) {} }", "k(int M)"),
        ("template <typename T> __global__ void k(T* A, T alpha) {}", "k(T* A, T alpha)"),
        ("__global__ void k(float** A) {}", "k(float** A)"),
        ("/* __global__ void no() {} */ __global__ void k(/* rows */ int M) {} // __global__ void no() {}", "k(int M)"),
        ('const char* text = "} __global__ void no() {";\n__global__ void k(int M) {}', "k(int M)"),
        ('const char* text = R"x(} __global__ void no() {)x";\n__global__ void k(int M) {}', "k(int M)"),
        ("#define MAKE(n) __global__ void n() \\\n { }\n__global__ void k(int M) {}", "k(int M)"),
        ("struct S { int x; } s; int a[] = {1, 2};\n__global__ void k(int M) {}", "k(int M)"),
        ("__global__ void k(int M);\n__global__ void k(int M) { if (M) { k(0); } }", "k(int M)"),
        ("__device__ float f(int M) { return 1; }\n__global__ void k(int M) {}", "k(int M)"),
        ("template __global__ void k<3>(int);\n__global__ void k(int M) {}", "k(int M)"),
        ("#if 0\n__global__ void no() {}\n#else\n__global__ void k(int M) {}\n#endif", "k(int M)"),
        ("#ifdef __CUDACC_RTC__\n__global__ void k(int M) {}\n#else\n__global__ void no() {}\n#endif", "k(int M)"),
        ("#ifndef __CUDACC_RTC__\nint main() { for (;;) {\n#endif\n__global__ void k(int M) {}", "k(int M)"),
        ("#if !defined(__CUDACC_RTC__)\nint main() {\n#endif\n__global__ void k(int M) {}", "k(int M)"),
        ("#if 0\n#if A\n__global__ void no() {}\n#endif\n#endif\n__global__ void k(int M) {}", "k(int M)"),
        ("#ifdef SLOW\n__global__ void k(int M) {\n#else\n__global__ void k(int M) {\n#endif\n}", "k(int M)"),
        ("__global__ void k(int M) {\n#if X\nfor (;;) {\n#else\nwhile (M) {\n#endif\n}\n}\nvoid f() {}", "k(int M)"),
        ("template <int A, int B>\n__global__ void k(int M) { int x = A < B; }", "k(int M)"),
        ("__global__ void k(int M) { int n = 1'000; char c = '}'; }", "k(int M)"),
    ],
)  # fmt: skip
def test_one_kernel_is_found(text: str, expected: str) -> None:
    assert found(text) == [expected]


@pytest.mark.parametrize(
    "text",
    ["", "int main() {}", "__global__", "__global__ void k(", "__global__ {}", "}}}{{{", "/* unclosed", '"', "#if"],
)
def test_no_kernel_is_found(text: str) -> None:
    assert found(text) == []


def test_several_kernels_with_their_lines() -> None:
    text = "__global__ void a() {}\n\n__global__ void\nb(int N) {}\n__global__ void a(int N) {}\n"
    assert [(str(s), s.line) for s in signatures(text)] == [("a()", 1), ("b(int N)", 4), ("a(int N)", 5)]


def test_template_parameters() -> None:
    text = """
    template <const int BM, unsigned BN = (2 > 1), typename T = float, class U, bool FAST = true, int = 3>
    __global__ void k(T* A) {}
    """
    (signature,) = signatures(text)
    assert signature.template == (
        TemplateParameter("int", "BM", default=False),
        TemplateParameter("unsigned", "BN", default=True),
        TemplateParameter("typename", "T", default=True),
        TemplateParameter("class", "U", default=False),
        TemplateParameter("bool", "FAST", default=True),
        TemplateParameter("int", "", default=True),
    )
    assert [parameter.is_type for parameter in signature.template] == [False, False, True, True, False, False]


def test_lines_are_those_of_the_file() -> None:
    text = 'a /* 1\n2 */ b // x \\\n still\n#define X \\\n 3\nc "s" R"(\n)" d'
    assert [(token.text, token.line) for token in tokens(text)] == [
        ("a", 1), ("b", 2), ("c", 6), ('""', 6), ('""', 6), ("d", 7),
    ]  # fmt: skip


@pytest.mark.sampled(99)
@pytest.mark.parametrize(("first", "second", "compiled"), [
    ("1", "X", "a"), ("0", "X", "b c"), ("0", "1", "b"), ("0", "0", "c"), ("X", "1", "a b c"),
    ("defined(__CUDACC__)", "X", "a"), ("!defined(__CUDACC__)", "X > 2", "b c"),
])  # fmt: skip
def test_branches_that_are_never_compiled_are_left_out(first: str, second: str, compiled: str) -> None:
    text = f"#if {first}\na\n#elif {second}\nb\n#else\nc\n#endif\nd"
    assert " ".join(token.text for token in tokens(text) if token.is_name) == f"{compiled} d"


@pytest.mark.parametrize("text", ["(" * 20_000, "template <" * 5_000, "#if X\n" * 5_000, '"' * 20_000, "/*" * 20_000])
def test_no_text_takes_long(text: str) -> None:
    started = time.thread_time()
    signatures(text + "__global__ void k(int M) {}")
    assert time.thread_time() - started < 2.0
