"""The disassembly of cubins in the cache, by the digest of the cubin.

nvdisasm needs a third of a second even for the smallest kernel, and who only runs a kernel on a GPU never reads the
text. So it is made when it is first read, not when the code is compiled. A file in the cache has a SHA-256 of its name
and the rest, then the compressed text. One that does not match is removed and made again.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import replace

from gemmlab.core.late_texts import LateTexts, ready_texts
from gemmlab.core.program import Artifact
from gemmlab.toolchain import cache as store
from gemmlab.toolchain import nvdisasm, private_files

_DIGEST_BYTES = 32


def with_text(artifact: Artifact, shown: Callable[[str], str] = str) -> Artifact:
    """Return an artifact whose text `sass` is made when it is first read: what `shown` returns for `text_of`."""
    code, kernel = artifact.code, artifact.kernel
    later = {"sass": lambda: shown(text_of(code, kernel))}
    return replace(artifact, texts=LateTexts(ready_texts(artifact.texts), later))


def text_of(code: bytes, kernel: str) -> str:
    """Return nvdisasm's text of a cubin, from the cache if it is there. `kernel` names the code in errors.

    Raises as `nvdisasm.disassemble` does.
    """
    name = f"{store.key_of('sass 1', hashlib.sha256(code).hexdigest())}.sass"
    found = _stored(name)
    if found is not None:
        return found
    text = nvdisasm.disassemble(code, kernel)
    packed = zlib.compress(text.encode())
    store.publish(name, _digest(name, packed) + packed)
    return text


def _stored(name: str) -> str | None:
    """Return the text in the cache's file `name`; `None` if there is none that can be trusted."""
    data = store.read(name)
    if data is None:
        return None
    packed = data[_DIGEST_BYTES:]
    if data[:_DIGEST_BYTES] == _digest(name, packed):
        return zlib.decompress(packed).decode()
    directory = store.cache_dir()
    if directory is not None:
        private_files.remove(directory / name)
    return None


def _digest(name: str, packed: bytes) -> bytes:
    return hashlib.sha256(name.encode() + packed).digest()
