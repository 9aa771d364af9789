"""The texture objects of the emulated device, in the table that handlers of instructions read."""

from __future__ import annotations

import numpy as np

from gemmlab.emulator.launch_layout import Texture

Entry = tuple[int, int, int, int]


class TextureMap:
    """A table of textures by handle, from 1 on. Equal textures share one handle, so that the table does not fill up."""

    def __init__(self) -> None:
        self.table = np.zeros((Texture.COUNT, Texture.SIZE // 8), np.int64)
        self._handles: dict[Entry, int] = {}

    def handle(self, base: int, texels: int, channels: int, element: str) -> int:
        """Return the handle of a texture whose texel 0 is at address `base`; a texture that is not there is added.

        `channels` is as in `Texture`, `element` a name in `Texture.ELEMENTS`. Raises `MemoryError` if the table is
        full.
        """
        entry = base, texels, channels, Texture.ELEMENTS.index(element)
        if entry not in self._handles:
            free = np.flatnonzero(self.table[1:, Texture.TEXELS // 8] == 0)
            if not free.size:
                raise MemoryError(f"more than {Texture.COUNT - 1} textures on the emulated device")
            self._handles[entry] = int(free[0]) + 1
            self.table[self._handles[entry]] = entry
        return self._handles[entry]

    def forget(self, low: int, high: int) -> None:
        """Drop the textures whose `base` is in `low` .. `high - 1`."""
        for entry in [entry for entry in self._handles if low <= entry[0] < high]:
            self.table[self._handles.pop(entry)] = 0
