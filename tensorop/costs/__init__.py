"""The cost model of all operators: what a variant's cost is made of, and coefficients fitted to measurements."""
