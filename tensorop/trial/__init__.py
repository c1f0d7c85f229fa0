"""One trial of a candidate: its calls, its limits, its verdict."""
