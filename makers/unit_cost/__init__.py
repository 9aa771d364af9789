"""Experiments of `makers/unit_costs.py`: what single instructions, barriers and blocks cost on a GPU."""
