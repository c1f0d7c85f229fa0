"""Judges what was built: candidates on a quick grid, winners on the full one, and the judge itself by controls."""
