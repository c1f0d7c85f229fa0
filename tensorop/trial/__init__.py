"""One candidate by the path of a trial, and what it is held against."""
