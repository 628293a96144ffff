"""The page, section by section: what each paper says, and what came out here."""
