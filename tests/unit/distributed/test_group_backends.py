"""Groups whose backend torch picks for each kind of device: `dist.get_backend` does not know it."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.distributed as dist

from gemmlab.distributed.message_group import connect, host_group, message_group
from gemmlab.distributed.peer_memory import peer_memory

GPU, CPU = torch.device("cuda", 1), torch.device("cpu")
UNDEFINED, MIXED = {"cuda": "nccl"}, {"cuda": "nccl", "cpu": "gloo"}
"""The backends of `init_process_group()` with a GPU, in new versions of torch and in old ones."""


class Group:
    """A group with the backends of the devices that it names."""

    def __init__(self, backends: Mapping[str, str]) -> None:
        self._backends = backends

    def _get_backend(self, device: torch.device) -> Any:
        if device.type not in self._backends:
            raise RuntimeError(f"No backend type associated with device type {device.type}")
        name = self._backends[device.type]
        return SimpleNamespace(name=lambda: name, options=SimpleNamespace(_timeout="a minute"))


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments of groups that are made, and of barriers."""
    found = list[dict[str, Any]]()

    def new_group(ranks: list[int], **options: Any) -> Group:
        found.append({"ranks": ranks, **options})
        return Group({"cuda" if options["backend"] == "nccl" else "cpu": options["backend"]})

    options = SimpleNamespace(Options=lambda **_: SimpleNamespace(config=SimpleNamespace()))
    monkeypatch.setattr(dist, "ProcessGroupNCCL", options, raising=False)
    monkeypatch.setattr(dist, "get_backend", lambda _group: "undefined")
    monkeypatch.setattr(dist, "get_process_group_ranks", lambda _group: [0, 1])
    monkeypatch.setattr(dist, "get_world_size", lambda _group: 2)
    monkeypatch.setattr(dist, "new_group", new_group)
    monkeypatch.setattr(dist, "barrier", lambda **options: found.append(options))
    return found


@pytest.mark.parametrize("backends", [UNDEFINED, MIXED, {"cuda": "gloo", "cpu": "gloo"}])
def test_gpus_share_memory_where_nccl_sends_from_them(
    monkeypatch: pytest.MonkeyPatch, backends: dict[str, str]
) -> None:
    asked = list[Any]()

    def gather(hosts: list[Any], own: Any, group: Any) -> None:
        asked.append(own)
        hosts[:] = [("one", True), ("another", True)]
        assert isinstance(group, Group)

    monkeypatch.setattr(dist, "all_gather_object", gather)
    # Asked for their hosts, the ranks have two.
    assert peer_memory(Group(backends), GPU) is None
    assert len(asked) == (backends["cuda"] == "nccl")


@pytest.mark.parametrize("backends", [UNDEFINED, MIXED])
def test_panels_have_a_group_of_nccl_beside_products(made: list[dict[str, Any]], backends: dict[str, str]) -> None:
    group = Group(backends)
    assert message_group(group, CPU) is group
    beside = message_group(group, GPU)
    assert message_group(group, GPU) is beside
    assert [each.get("backend") for each in made] == ["nccl", None]
    # The barrier that connects is one of GPUs.
    assert made[1] == {"group": beside, "device_ids": [1]}


def test_ranks_are_connected_by_the_backend_of_their_gpus(made: list[dict[str, Any]]) -> None:
    group = Group(MIXED)
    for device in (CPU, GPU, GPU):
        connect(group, device)
    assert made == [{"group": group, "device_ids": [1]}]


def test_hosts_send_by_the_group_itself_if_it_can(made: list[dict[str, Any]]) -> None:
    mixed, of_gpus = Group(MIXED), Group(UNDEFINED)
    assert host_group(mixed) is mixed
    assert host_group(of_gpus) is host_group(of_gpus) is not of_gpus
    assert made == [{"ranks": [0, 1], "timeout": "a minute", "backend": "gloo", "use_local_synchronization": True}]
