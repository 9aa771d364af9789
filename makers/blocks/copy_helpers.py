"""The block on the helper functions in the headers that exercises on copies include: signatures and meanings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from blocks.markdown import markdown_table
from blocks.records import ROOT

_FOLDER = ROOT / "src" / "gemmlab" / "kernels" / "cuda_common"
HEADERS = ("shared_address.cuh", "mbarrier.cuh", "tensor_copy.cuh")
_HELPER = re.compile(
    r"(?P<comment>(?:^//[^\n]*\n)*)^__device__ __forceinline__ (?P<signature>[^{;]*?\))\s*\{", re.MULTILINE
)
_UNCOMMENTED = {
    "shared_address": "The address of shared memory as the others take it.",
    "wait": "Waits until the phase of this parity has ended.",
    "arrive": "One arrival.",
    "arrive_and_expect": "One arrival, and the bytes that copies will bring in this phase.",
    "commit_stores": "Closes the group of the stores before it.",
}
"""Name of a helper that has no comment in its header -> its meaning."""


def copy_helpers() -> str:
    """Return a table of all helpers: header, signature, meaning."""
    rows = [[f"`{header}`", f"`{signature}`", words] for header in HEADERS for signature, words in helpers(header)]
    return markdown_table(["header", "helper", "what it does"], rows, ["helper", "what it does"])


def helpers(header: str) -> Iterator[tuple[str, str]]:
    """Yield the signature and the meaning of each helper of a header. Raises `KeyError` for one without a comment that
    is not in `_UNCOMMENTED`.
    """
    for found in _HELPER.finditer((_FOLDER / header).read_text(encoding="utf-8")):
        signature = " ".join(found["signature"].split()).replace("( ", "(")
        comment = " ".join(line.removeprefix("//").strip() for line in found["comment"].splitlines())
        name = signature.partition("(")[0].split()[-1]
        yield signature, comment or _UNCOMMENTED[name]


BLOCKS = {"copy-helpers": copy_helpers}
