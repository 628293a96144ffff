"""The pipeline from texts to scores: units, weightings, pairings, costs, read-outs, metrics."""
