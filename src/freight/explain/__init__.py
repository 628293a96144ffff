"""From solved transport plans to explanations: matches, unmatched mass, contributions of units."""
