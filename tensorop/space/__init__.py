"""Search spaces: the legal points that a tuner may ask for."""

from tensorop.space.space import Exclusion, Space

__all__ = ["Exclusion", "Space"]
