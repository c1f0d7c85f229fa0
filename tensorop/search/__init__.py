"""The search: parts that plan trials (micro, blocking, large, smallest), and the loop that carries a plan out."""
