"""The meaning of every opcode, by group; importing this fills the table."""

from __future__ import annotations

import pkgutil
from importlib import import_module

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
