"""Names of `__shared__` variables by their addresses: static ones as PTX declares them, and what the launch adds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gemmlab.emulator.geometry import Geometry
from gemmlab.emulator.shared_variables import array_at, shared_variables

PTX = """
.extern .shared .align 128 .b8 pool[];
.shared .align 16 .b8 _ZZ4tilePKfE2As[4096];
.visible .entry tile()
{
\t.shared .align 8 .b8 _ZZ4tilePKfE4full[32];
\t.shared .align 8 .u64 _ZZ4tilePKfE4done;
\tmov.u32 %r1, _ZZ4tilePKfE2As;
\tmov.u32 %r2, _ZZ4tilePKfE4full;
\tmov.u32 %r3, _ZZ4tilePKfE4done;
\tmov.u32 %r4, pool;
}
.visible .entry other()
{
\t.shared .align 4 .b8 _ZZ5otherE6theirs[64];
\tmov.u32 %r1, _ZZ5otherE6theirs;
}
"""
STATIC = 4096 + 32 + 8


def test_the_variables_of_a_kernel_are_laid_out_as_they_are_declared() -> None:
    found = {each.name: (each.start, each.nbytes) for each in shared_variables(PTX, "tile", STATIC)}
    assert found == {"As": (0, 4096), "full": (4096, 32), "done": (4128, 8), "pool": (4224, 0)}
    assert [each.name for each in shared_variables(PTX, "other", 64)] == ["theirs"]


def test_nothing_is_named_if_the_sizes_do_not_add_up() -> None:
    assert shared_variables(PTX, "tile", STATIC + 8) == ()
    assert shared_variables("", "tile", 0) == ()


def test_an_access_behind_all_variables_is_one_of_the_last() -> None:
    variables = shared_variables(PTX, "other", 64)
    assert array_at(variables, 63) == "theirs"
    assert array_at(variables, 64) == "theirs"
    assert array_at((), 0) == ""


def test_words_of_shared_memory_have_the_names_of_their_variables() -> None:
    cluster = geometry(cluster=(2, 1, 1))
    assert geometry().shared_word(1024 + 4096 + 8) == "full[1]"
    assert geometry().shared_word(1024 + 4128) == "done"
    assert geometry().shared_word(1024 + 4224 + 65536) == "at byte 65,536 of pool"
    assert cluster.shared_word(1 << 24 | 1024 + 4128) == "done of block 1 of the cluster"
    assert Geometry((1, 1, 1), (1, 1, 1), 1024, 8, 1, 0, {}).shared_word(1024) == "at 0x400"


def test_a_block_that_a_cluster_lacks_is_told_with_the_size_of_the_cluster() -> None:
    alone = geometry()
    assert alone.place_in_cluster(1).startswith("block 1 of a cluster, but the launch has none")
    assert replace(alone, in_clusters=True).place_in_cluster(1) == "block 1 of a cluster of 1"
    assert replace(alone, in_clusters=True, cluster=(2, 2, 1)).place_in_cluster(5) == "block 5 of a cluster of 4"


def test_the_owner_of_an_address_is_another_block_of_the_cluster() -> None:
    wide = geometry(grid=(4, 4, 1), cluster=(2, 2, 1))
    assert [wide.rank(block) for block in range(8)] == [0, 1, 0, 1, 2, 3, 2, 3]
    assert wide.owner(3 << 24 | 1024, 5) == ""
    assert wide.owner(3 << 24 | 1024, 4) == "block 3 of the cluster"
    assert wide.owner(int(np.uint64(1) << np.uint64(40)), 4) == ""
    assert wide.shared_array(int(np.uint64(1) << np.uint64(40))) == ""


def geometry(grid: tuple[int, int, int] = (2, 1, 1), cluster: tuple[int, int, int] = (1, 1, 1)) -> Geometry:
    """Return the geometry of a launch of `tile`."""
    variables = shared_variables(PTX, "tile", STATIC)
    return Geometry(grid, (32, 1, 1), 1024, STATIC + 100_000, 16, 0, {}, cluster=cluster, variables=variables)
