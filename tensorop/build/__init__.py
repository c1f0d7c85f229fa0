"""Source to object, program and library: killable compilers, a gate for strangers' objects, a cache keyed by content."""
