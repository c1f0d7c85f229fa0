"""Policies of the author: one file each, found by its name. A file has

DESCRIPTION  a line of text
PARENTS      templates whose state it wants to know, 1 or more (default: 1)
policy       a function of (state, history) that returns a Choice, or None: no further question is asked

They import `tensorop.model` alone.
"""
