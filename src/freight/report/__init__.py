"""What people look at: tables for a terminal, plots, and pages that need nothing but a browser."""
