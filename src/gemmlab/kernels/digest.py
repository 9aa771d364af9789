"""Digests of kernels' sources: measurements of one version of a kernel are not valid for another."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from gemmlab.kernels.kernel import Kernel

_COMMON = Path(__file__).parent / "cuda_common"
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)


def source_digest(kernel: Kernel) -> str:
    """Return the SHA-256, in hexadecimal, of a kernel's file, of the `.toml` file of that name beside it, and of the
    headers that it includes in quotes, directly or not. Headers count that lie in the including file's folder or in
    `cuda_common`.

    For a CPU kernel it is that of the fingerprint of its default configuration on this machine, which covers the code
    generator. Raises `DeviceError` for a CPU kernel that is `unavailable`.
    """
    if kernel.device == "cpu":
        from gemmlab.ir.target import host_target

        program = kernel.program(kernel.params, host_target().name)
        return hashlib.sha256(program.fingerprint.encode()).hexdigest()
    return _of_file(kernel.path)


def _of_file(path: Path) -> str:
    facts = path.with_suffix(".toml")
    digest, pending, known = hashlib.sha256(), [facts, path] if facts.is_file() else [path], set[Path]()
    while pending:
        file = pending.pop()
        data = file.read_bytes()
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(data).digest())
        for name in _INCLUDE.findall(data):
            places = (folder / name.decode(errors="replace") for folder in (file.parent, _COMMON))
            found = next((place.resolve() for place in places if place.is_file()), None)
            if found is not None and found not in known:
                known.add(found)
                pending.append(found)
    return digest.hexdigest()
