"""Optimal transport, and nothing of text: problems as data, one solver per form, barycenters.

Start with `types` (Problem, Plans) and `solvers` (solve); `batches` prepares what the solvers get.
"""
