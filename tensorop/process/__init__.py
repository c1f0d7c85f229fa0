"""Processes: starting and ending them, deadlines, temporary files, and the barrier around untrusted text."""
