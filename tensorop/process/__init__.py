"""Processes: that Ctrl-C does not reach, that end in time, what they leave, and what a stranger's cause."""
