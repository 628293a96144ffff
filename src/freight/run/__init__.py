"""Runs over files of any size: shards out, resumable, on this machine or on a Ray cluster."""

from freight.run.local import local
from freight.run.on_ray import on_ray
from freight.run.summary import Outcome, Run

__all__ = ["Outcome", "Run", "local", "on_ray"]
