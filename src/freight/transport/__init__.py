"""Optimal transport, and nothing of text: problems as data, one solver per form, barycenters.

Start with `types` (Problem, Plans) and `solvers` (solve); `types.Batch` is what the solvers get.
"""
