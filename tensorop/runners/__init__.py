"""Runners start processes on the target; a session exchanges messages with the harness in a process."""
