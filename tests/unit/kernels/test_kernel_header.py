"""What is stated of a CUDA kernel: read, checked, and refused with file, key and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gemmlab.core.errors import UsageError
from gemmlab.core.precision import PRECISIONS
from gemmlab.kernels.cuda_file.header import KEYS, HeaderValues, from_flags, read_header, read_toml
from gemmlab.kernels.cuda_file.header_facts import Facts, read_facts

FIRST_LINE = 4
"""Of what `facts_of` puts into the header."""


def source(toml: str) -> str:
    return f"// Licence: none.\n\n/* gemmlab\n{toml}\n*/\n__global__ void k() {{}}\n"


def facts_of(toml: str, **flags: Any) -> Facts:
    header = read_header("mine.cu", source(toml))
    assert header is not None
    return read_facts(HeaderValues("mine.cu", (header, from_flags(flags))), "gemm")


def test_everything_that_can_be_stated() -> None:
    facts = facts_of("""
summary = "a kernel"
idea = "it is here"
source = "this test"
op = "gemm"
kernel = "k"
after = "naive"
branch = true
aliases = ["k_old", "k_older"]
arch = "sm_80"
precision = "tf32"
params = { BM = 64, PAD = -1 }
require = ["BM % 32 == 0", "M % BM == 0"]
grid = ["ceil_div(M, BM)", 2]
threads = 256
smem_bytes = "4 * BM * K"
align = 16
transposes = ["tn", "nn"]
args = ["M", "A", "B", "C", "K + 1"]
expect = ["shared_load_excess == 0", { shape = "64x32x16", config = { BM = 32 }, that = "some.counter > 1" }]
tune.BM = [32, 64, 128]
""")
    assert (facts.summary, facts.idea, facts.source) == ("a kernel", "it is here", "this test")
    assert (facts.op, facts.kernel, facts.arch, facts.precision) == ("gemm", "k", "sm_80", "tf32")
    assert (facts.after, facts.branch, facts.aliases) == ("naive", True, ("k_old", "k_older"))
    assert dict(facts.params) == {"BM": 64, "PAD": -1}
    assert dict(facts.tune) == {"BM": (32, 64, 128)}
    assert [expression.text for expression in facts.require] == ["BM % 32 == 0", "M % BM == 0"]
    assert [expression.text for expression in facts.grid] == ["ceil_div(M, BM)", "2"]
    assert [expression({}) for expression in facts.threads] == [256]
    assert facts.smem_bytes({"BM": 64, "K": 8}) == 2048
    assert (facts.align, facts.layouts, facts.args) == (16, ("nn", "tn"), ("M", "A", "B", "C", "K + 1"))
    plain, other = facts.expect
    assert (plain.that.text, plain.shape, dict(plain.config)) == ("shared_load_excess == 0", "128", {})
    assert (other.shape, dict(other.config)) == ("64x32x16", {"BM": 32})
    assert other.that.names == {"some.counter"}
    assert other.where == f"mine.cu:{FIRST_LINE + 19}: expect"
    assert set(KEYS) <= {*Facts.__dataclass_fields__, "transposes", "step", "let"}


def test_what_is_not_stated_has_a_meaning() -> None:
    facts = facts_of("")
    assert (facts.op, facts.after, facts.arch, facts.precision, facts.align) == ("gemm", None, "", "", 0)
    assert (facts.branch, facts.aliases) == (False, ())
    assert (facts.grid, facts.threads, facts.args, facts.layouts) == ((), (), None, ("nn",))
    assert facts.smem_bytes({}) == 0


def test_parts_of_expressions_have_names() -> None:
    facts = facts_of("""
params = { BM = 64, SHARE = 4 }
grid = "tiles if tiles > SHARE else most"
steps = "tiles * K"
let.tiles = "ceil_div(M, BM)"
let.most = "min(tiles + 1, SHARE)"
""")
    assert (
        facts.grid[0].text == "(ceil_div(M, BM)) if (ceil_div(M, BM)) > SHARE else (min((ceil_div(M, BM)) + 1, SHARE))"
    )
    assert facts.grid[0]({"M": 640, "BM": 64, "SHARE": 4}) == 10
    assert facts.grid[0]({"M": 65, "BM": 64, "SHARE": 4}) == 3
    assert facts.steps.names == {"M", "BM", "K"}


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ('Tiles = "1"', "small letters"), ('min = "1"', "a meaning already"), ('alpha = "1"', "a meaning already"),
        ("tiles = 1", "not an expression"),
    ],
)  # fmt: skip
def test_a_part_that_no_expression_could_name_is_refused(stated: str, why: str) -> None:
    with pytest.raises(UsageError, match=rf"mine.cu:\d+: let: .*{why}"):
        facts_of(f"let.{stated}")


def test_a_part_names_only_parts_before_it() -> None:
    with pytest.raises(UsageError, match="later"):
        facts_of('grid = "first"\nlet.first = "later + 1"\nlet.later = "M"')


@pytest.mark.parametrize(
    ("written", "dimensions"),
    [
        ("32", ["32"]),
        ('"ceil_div(M, 32)"', ["ceil_div(M, 32)"]),
        ('"ceil_div(M, 32), N"', ["ceil_div(M, 32)", "N"]),
        ('["M", "min(N, 2)", 3]', ["M", "min(N, 2)", "3"]),
    ],
)
def test_dimensions_are_written_in_several_manners(written: str, dimensions: list[str]) -> None:
    assert [expression.text for expression in facts_of(f"grid = {written}").grid] == dimensions


def test_a_later_statement_replaces_an_earlier_one_key_by_key() -> None:
    facts = facts_of('grid = "M"\nthreads = 32\nparams = { BM = 1 }', grid="N", threads=None, params={"BN": 2})
    assert [expression.text for expression in facts.grid] == ["N"]
    assert [expression.text for expression in facts.threads] == ["32"]
    assert dict(facts.params) == {"BN": 2}


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        # TOML itself
        ("grid = ", "mine.cu:4: column 8: Invalid value"),
        ('summary = "a"\ngrid == 3', "mine.cu:5: column 7: "),
        ('summary = "a"\nsummary = "b"', "mine.cu:5: "),
        ('summary = "a', "mine.cu:4: "),
        ("grid = [1,", "mine.cu:4: Invalid value at the end of the TOML"),
        ("x = " + "[" * 5000, "nested too deeply"),
        (f'summary = "{"x" * 30_000}"', "characters of TOML; at most 20000"),
        ("\nstep = " + "9" * 5000, "mine.cu:5: a whole number that does not fit in 64 bits"),
        ("\nparams = { BM = 0x" + "f" * 5000 + " }", "mine.cu:5: a whole number that does not fit in 64 bits"),
        ("step = 9223372036854775808", "mine.cu:4: a whole number that does not fit in 64 bits"),
        # keys
        ('\nsumary = "a"', "mine.cu:5: sumary: no such key; did you mean summary?"),
        ("xyzzy = 1", "mine.cu:4: xyzzy: no such key; known: summary, idea"),
        # texts
        ("summary = 3", "mine.cu:4: summary: 3 is not one line of text"),
        ('idea = """a\nb"""', "mine.cu:4: idea: 'a\\nb' is not one line"),
        ('op = "sort"', "mine.cu:4: op: no operation named 'sort'; operations: gemm"),
        ('op = "./sort.py"', "op: './sort.py' is a Python file: only the command line can name one, as --op ./sort.py"),
        ('op = "sort"', "or one of a Python file, as --op ./sort.py"),
        ("after = 3", "mine.cu:4: after: 3 is no id of a rung"),
        ('after = "two words"', "after: 'two words' is no id of a rung"),
        ("branch = 1", "mine.cu:4: branch: 1 is neither true nor false"),
        ('aliases = ["a", "b c"]', "mine.cu:4: aliases: 'b c' is no id of a kernel"),
        ("aliases = 7", "aliases: 7 is not a list of texts"),
        ('arch = "90"', "arch: '90' is not an architecture, as sm_80"),
        ('arch = "sm_91"', "mine.cu:4: arch: unknown architecture 'sm_91'; known: sm_70, sm_72, sm_75, sm_80"),
        ('arch = "sm_85a"', "arch: unknown architecture 'sm_85a'"),
        ('precision = "half"', f"precision: 'half' is none of {', '.join(PRECISIONS)}"),
        # parameters
        ("params = 3", "mine.cu:4: params: 3 is not a table, as { BM = 32 }"),
        ("[params]\nBM = 1\nbn = 2", "mine.cu:6: params: 'bn': parameters are named in capitals"),
        ("[params]\nBM = 1\nBN = 2.5", "mine.cu:6: params: BN = 2.5 is not a whole number of 32 bits"),
        ("params = { BM = 4294967296 }", "BM = 4294967296 is not a whole number of 32 bits"),
        ("params = { PAD = true }", "PAD = True is not a whole number"),
        ("params = { N = 4 }", "N is a value of the problem and no parameter"),
        ("params = { BM = 4 }\n[tune]\nBN = [1]", "mine.cu:6: tune: BN is not in params (BM)"),
        ("params = { BM = 4 }\ntune = { BM = [] }", "tune: BM = [] is not a list of whole numbers"),
        ("params = { BM = 4 }\ntune = { BM = [1, 1] }", "has a value twice"),
        ("params = { lda = 1 }", "lda is a value of the problem and no parameter"),
        # expressions
        ('grid = "ceil_div(M, 32"', "mine.cu:4: grid: expression 'ceil_div(M, 32': column 9"),
        ('grid = "open(M)"', "mine.cu:4: grid: expression 'open(M)': column 1: 'open(M)' is not allowed"),
        ('grid = [\n  "M",\n  "min(Q, 2)",\n]', "mine.cu:6: grid: expression 'min(Q, 2)': no value named 'Q'"),
        ("grid = [1, 2, 3, 4]", "is not one to three numbers or expressions"),
        ("threads = []", "is not one to three numbers"),
        ("threads = 1.5", "threads: 1.5 is not one to three numbers"),
        ('threads = "32,"', "threads: expression '': it is empty"),
        ('require = ["BM > 0"]', "require: expression 'BM > 0': no value named 'BM'"),
        ("require = [3]", "require: [3] is not a list of texts"),
        ("smem_bytes = true", "smem_bytes: True is neither a whole number nor an expression"),
        ('smem_bytes = "M +"', "smem_bytes: expression 'M +'"),
        # the rest
        ("align = 6", "align: 6 is not a power of two from 4 to 512 (bytes)"),
        ('transposes = ["nn", "nx"]', "transposes: 'nx' is none of nn, nt, tn, tt"),
        ("args = 3", "args: 3 is not a list of texts"),
        ("expect = [3]", "expect: 3 is neither a text nor a table"),
        ("expect = [{ shape = '64' }]", "neither a text nor a table with `that ="),
        ('[[expect]]\nshpe = "64"\nthat = "a == 1"', "mine.cu:6: expect: 'shpe': a table has that, shape and config"),
        ('[[expect]]\nshape = "64,65"\nthat = "a == 1"', "mine.cu:6: expect: shape '64,65' is not one size"),
        ('[[expect]]\nshape = 64\nthat = "a == 1"', "shape 64 is not one size"),
        ('expect = [{ config = { BM = 3 }, that = "a" }]', "expect: config {'BM': 3} does not fit the parameters {}"),
        ('expect = ["a ="]', "mine.cu:4: expect: expression 'a =': column 3"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_line_and_key(toml: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        facts_of(toml)
    message = str(caught.value)
    assert message.startswith("mine.cu:")
    assert said in message


def test_many_combinations_are_refused_before_they_are_counted_out() -> None:
    names = [f"P{index}" for index in range(12)]
    params = ", ".join(f"{name} = 1" for name in names)
    tune = "\n".join(f"{name} = {list(range(50))}" for name in names)
    with pytest.raises(UsageError, match=r"tune: \d+ combinations, legal or not; at most 65536"):
        facts_of(f"params = {{ {params} }}\n[tune]\n{tune}")


def test_flags_are_named_as_flags() -> None:
    with pytest.raises(UsageError, match=r"^--grid: expression 'M \+': column"):
        facts_of('grid = "M"', grid="M +")
    with pytest.raises(UsageError, match=r"^--smem-bytes: expression 'Q': no value named 'Q'"):
        facts_of("", smem_bytes="Q")
    with pytest.raises(UsageError, match="'grids' is not a fact of kernels"):
        from_flags({"grids": "M"})


def test_the_comment_is_found_and_only_one_is_allowed() -> None:
    assert read_header("mine.cu", "__global__ void k() {}") is None
    assert read_header("mine.cu", "// gemmlab\n/* gemmlab is fine */") is None
    header = read_header("mine.cu", '/*gemmlab  \r\nsummary = "a"\r\n*/')
    assert header is not None
    assert header.values == {"summary": "a"}
    with pytest.raises(UsageError, match=r"mine\.cu:5: a second `/\* gemmlab` comment"):
        read_header("mine.cu", "/* gemmlab\nstep = 1\n*/\n\n/* gemmlab\n*/")
    with pytest.raises(UsageError, match=r"mine\.cu:2: the `/\* gemmlab` comment is not closed"):
        read_header("mine.cu", "\n/* gemmlab\nstep = 1\n")


def test_a_toml_file_is_read_like_a_header(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('grid = "M"\nthreads = "N +"', encoding="utf-8")
    statement = read_toml(path)
    with pytest.raises(UsageError, match=r"^mine\.toml:2: threads: expression 'N \+'"):
        read_facts(HeaderValues("mine.cu", (statement,)), "gemm")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8 text"):
        read_toml(path)
    with pytest.raises(UsageError, match=r"none\.toml: No such file"):
        read_toml(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("define", "said"),
    [
        (
            "#define TILE 16",
            "write 16, or state it as a parameter, with `#ifndef TILE` before its #define and `params = {",
        ),
        (
            "#ifndef TILE\n#define TILE 16\n#endif",
            "write 16, or state it as a parameter, with `params = { TILE = 16 }`",
        ),
        ("# define TILE (BM * 2)", "the launch does not know: state it as a parameter, with `#ifndef TILE`"),
    ],
)
def test_a_macro_of_the_file_is_told_from_a_value_of_another_operation(define: str, said: str) -> None:
    text = f"{define}\n" + source('grid = "ceil_div(N, TILE)"')
    header = read_header("mine.cu", text)
    assert header is not None
    with pytest.raises(UsageError, match=r"grid: expression .*: TILE is a macro of the file") as caught:
        read_facts(HeaderValues("mine.cu", (header,)), "gemm", text)
    assert said in str(caught.value)
    assert "operation" not in str(caught.value)
