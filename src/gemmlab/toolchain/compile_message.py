"""Error messages for sources that do not compile: the compiler's lines with the user's file names, and advice."""

from __future__ import annotations

import re

from gemmlab.core.program import Program
from gemmlab.toolchain import cuda_headers, nvrtc
from gemmlab.toolchain.searched import Searched
from gemmlab.toolchain.virtual_files import CompilerInput

_HEADERLESS = "GPU code has no headers of the host: put them and main() under #ifndef __CUDACC_RTC__"
_FOLDERLESS = "Name the folder of other headers with -I, or with `options` in the file's header."
_UNFOUND = "cannot open source file"
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
    if any(sign in log for sign in _SIGNS_OF_HOST_CODE):
        message += f"\n{_HEADERLESS}"
        if not cuda_headers.brings_headers(nvrtc.compiler()):
            message += "; CUDA's own come with NVRTC 13.3 and later, or from a toolkit that CUDA_HOME names"
    return f"{program.kernel} ({program.entry}) for {program.target} does not compile:\n{message}"
