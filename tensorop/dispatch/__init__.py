"""The choice among variants: their measurements, probes inside the library, cost models, and dispatch trees."""
