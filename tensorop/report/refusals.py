"""How many points the constraints took out of each search space, and why."""

from __future__ import annotations

from typing import Any

from tensorop.errors import JobError
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.render import instantiate
from tensorop.store.history import History


def of_run(history: History, operator: Operator, platform: Platform) -> list[dict[str, Any]]:
    """For each dtype and template of the run: the product of its tunables, the legal points, and what each reason
    took."""
    out = []
    for dtype in history.facts.get("dtypes", ()):
        for template in history.templates.values():
            entry: dict[str, Any] = {"dtype": dtype, "template": template.name}
            entry |= {"product": None, "legal": 0, "reasons": []}
            out.append(entry)
            missing = instantiate.missing_primitives(platform, template, dtype)
            try:
                space = None if missing else instantiate.micro_space(platform, template, dtype)
                why = f"the platform lacks {', '.join(missing)}"
            except JobError as error:
                space, why = None, error.message
            if space is None:
                entry["reasons"] = [{"reason": why, "points": None}]
                continue
            entry["product"], entry["legal"] = space.product, space.size
            for refusal in space.refusals():
                said = {"reason": refusal.constraint.reason, "must": refusal.constraint.must}
                entry["reasons"].append({**said, "points": refusal.points, "example": dict(refusal.example)})
    return out
