"""Runners start a process on the target; a session speaks with the harness in it."""
