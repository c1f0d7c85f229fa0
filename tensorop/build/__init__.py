"""Source to object, program and library: killable compilers, a gate for objects, a cache keyed by content."""
