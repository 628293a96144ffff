"""Metrics where people evaluate already: evaluate, torchmetrics, lm-evaluation-harness."""
