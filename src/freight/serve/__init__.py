"""Scores and explanations over HTTP, and a page to try them on: `freight serve`."""
