"""Optimal transport and nothing of text: problems, solvers, barycenters and their gradients."""
