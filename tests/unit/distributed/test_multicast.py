"""Memory that GPUs of one host share is mapped without objects for NVLink multicast."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.distributed import _symmetric_memory as symmetric

from gemmlab.distributed.peer_memory import PeerMemory

NAME = "TORCH_SYMM_MEM_DISABLE_MULTICAST"


@pytest.mark.parametrize("before", [None, "0"])
def test_torch_maps_memory_without_multicast(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    monkeypatch.delenv(NAME, raising=False)
    if before is not None:
        monkeypatch.setenv(NAME, before)
    met = []

    def rendezvous(memory: torch.Tensor, _group: Any) -> Any:
        met.append(os.environ[NAME])
        return SimpleNamespace(get_buffer=lambda *_: memory)

    monkeypatch.setattr(symmetric, "rendezvous", rendezvous)
    monkeypatch.setattr(symmetric, "empty", torch.empty)
    memory = PeerMemory.__new__(PeerMemory)
    memory.ranks, memory._group, memory._device, memory._mappings = 2, None, torch.device("cpu"), {}
    memory._shared("slots", 64)
    assert met == ["1"]
    assert os.environ.get(NAME) == before
