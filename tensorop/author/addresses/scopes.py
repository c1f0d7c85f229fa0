"""The blocks around a point of the text: the types of their names, and what these names hide."""

from __future__ import annotations

from tensorop.author.addresses.path import Path
from tensorop.author.addresses.values import Data, Ptr


class Scopes:
    """The blocks, the innermost last. Only data may hide data (rule `hiding`); the hidden value is kept in a path."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, tuple[str, int]]] = [{}]  # type and stars of each name

    def type_of(self, name: str) -> tuple[str, int]:
        return next((block[name] for block in reversed(self.blocks) if name in block), ("", 0))

    def declare(self, path: Path, name: str, kind: str, stars: int) -> None:
        if name not in self.blocks[-1] and name in path.env:
            path.env[f"{name} {len(self.blocks) - 1}"] = path.env[name]
        self.blocks[-1][name] = kind, stars

    def leave(self, paths: list[Path]) -> list[Path]:
        """The paths after the innermost block, without its names; what these hid is visible again."""
        block = self.blocks.pop()
        for env in [path.env for path in paths]:
            for name in block:
                env.pop(name, None)
                if (hidden := env.pop(f"{name} {len(self.blocks)}", None)) is not None:
                    env[name] = hidden
            for name, value in list(env.items()) if any(name.endswith("]") for name in block) else ():
                if isinstance(value, Ptr) and value.operand.flag in block:
                    env[name] = Data.UNSET  # its array is out of scope
        return paths
