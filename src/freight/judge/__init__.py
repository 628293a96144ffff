"""Judging metrics against people."""
