"""A product on several ranks: torchrun --nproc-per-node 4 distributed_gemm.py [SIZE]. Without torchrun: one rank."""

import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

import gemmlab.distributed

size = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
kind = "cuda" if torch.cuda.is_available() else "cpu"
for name, value in {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 0}.items():
    os.environ.setdefault(name, str(value))
dist.init_process_group("nccl" if kind == "cuda" else "gloo", timeout=timedelta(seconds=60))
ranks = dist.get_world_size()
if kind == "cuda":
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())

mesh = init_device_mesh(kind, (2, ranks // 2) if ranks % 2 == 0 else (ranks,))
a, b = torch.randn(size, size, device=kind), torch.randn(size, size, device=kind)
places = [Shard(0), Shard(1)][: mesh.ndim]
left, right = distribute_tensor(a, mesh, places), distribute_tensor(b, mesh, places)

product = gemmlab.distributed.gemm(left, right)
error = (product.full_tensor() - left.full_tensor() @ right.full_tensor()).abs().max().item()
if dist.get_rank() == 0:
    print(gemmlab.distributed.explain_choice(left, right))
    print(f"C is {tuple(product.shape)} on {ranks} ranks, at most {error:.1e} from torch's product")
dist.barrier()  # no rank ends while others still communicate with it
dist.destroy_process_group()
