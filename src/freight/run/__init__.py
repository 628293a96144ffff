"""Runs over files of any size into a folder of shards: resumable, on this machine or on Ray."""

from freight.run.local_engine import local
from freight.run.ray_engine import on_ray
from freight.run.shards import Outcome, Run

__all__ = ["Outcome", "Run", "local", "on_ray"]
