"""Error messages for sources that do not compile: the compiler's lines with the user's file names, and advice."""

from __future__ import annotations

import re

from gemmlab.core.program import Program
from gemmlab.toolchain import cuda_headers, nvrtc
from gemmlab.toolchain.searched import Searched
from gemmlab.toolchain.virtual_files import CompilerInput

_HOST = "Code and headers for a host are left out where they are recognised; put others under #ifndef __CUDACC_RTC__"
_FOLDERLESS = "Name the folder of other headers with -I, or with `options` in the file's header."
_UNFOUND = "cannot open source file"
_MEMBER = re.compile(r'namespace "std" has no member (?:template )?"(\w+)"')
_STANDARD = {
    "type_traits": r"enable_if\w*|conditional\w*|decay\w*|void_t|integral_constant|(?:true|false)_type|declval"
                   r"|common_type\w*|underlying_type\w*|(?:is|remove|add|make)_\w+",
    "utility": r"pair|make_pair|move|forward|exchange|(?:make_)?(?:integer|index)_sequence\w*",
    "tuple": r"(?:make_)?tuple\w*|tie|get|apply", "array": r"array", "limits": r"numeric_limits",
    "algorithm": r"min|max|swap|clamp", "cstdint": r"u?int\w*_t|size_t",
    "cmath": r"abs|a?(?:sin|cos|tan)h?|exp2?|log(?:2|10|1p)?|sqrt|pow|floor|ceil|round|fma|fm(?:ax|in|od)"
             r"|is(?:nan|inf)",
}  # fmt: skip
"""Header -> pattern of the names that it declares in the namespace `std`. Files for nvcc often get these names from
other headers.
"""
_SIGNS_OF_HOST_CODE = (_UNFOUND, "device-side kernel launch", 'namespace "std" has no member')
_INSTANCE = re.compile(r"__nv_name_map\(\d+\): (.*)\n +#pragma nv_mangled_name.*\n *\^\n")


def explain(program: Program, files: CompilerInput, searched: Searched, log: str) -> str:
    """Return the error message for a program that does not compile: the compiler's log, and advice on headers if it
    helps.

    `searched` names the files that were read (see `CompilerInput.localise`).
    """
    log = _INSTANCE.sub(lambda match: f"instance {program.entry}: {match[1]}\n", log)
    message = files.localise_errors(log, searched)
    if _UNFOUND in log:
        message += f"\n{_FOLDERLESS}"
    headers = dict.fromkeys(
        header for name in _MEMBER.findall(log) for header, names in _STANDARD.items() if re.fullmatch(names, name)
    )
    if headers:
        included = " ".join(f"--option=-include={header}" for header in headers)
        message += f"\nThe standard library's names have to be included: {included} does it without an edit."
    elif any(sign in log for sign in _SIGNS_OF_HOST_CODE):
        message += f"\n{_HOST}"
        if not cuda_headers.brings_headers(nvrtc.compiler()):
            message += "; CUDA's own come with NVRTC 13.3 and later, or from a toolkit that CUDA_HOME names"
    return f"{program.kernel} ({program.entry}) for {program.target} does not compile:\n{message}"
