"""Caches of encoded texts: in memory, and on disk."""
