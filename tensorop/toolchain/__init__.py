"""Builds objects, programs and libraries: compilers with a deadline, a gate for objects, a cache keyed by content."""
