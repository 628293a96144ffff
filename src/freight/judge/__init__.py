"""How well metrics agree with people: statistics, studies, and samples to be rated."""
