"""Reports for people: tables at the terminal, plots, and pages in one file each."""
