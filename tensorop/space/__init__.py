"""Legal points: what a tuner may ask for."""

from tensorop.space.space import Refusal, Space

__all__ = ["Refusal", "Space"]
