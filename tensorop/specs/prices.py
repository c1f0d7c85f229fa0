"""Prices of language models, from a file of the user:

schema: 1
currency: USD
models:
  my-model: {prompt: 0.5, completion: 1.5}  # per million tokens
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from tensorop.errors import SpecError, UsageError
from tensorop.specs import yamlfile

_Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


class ModelPrice(yamlfile.Record):
    prompt: _Amount
    completion: _Amount


class PriceFile(yamlfile.File):
    currency: str = Field(default="USD", pattern=r"^[A-Za-z]{1,12}$")
    models: dict[str, ModelPrice]


@dataclass(frozen=True)
class TokenPrice:
    """What a million tokens of one language model cost."""

    prompt: float
    completion: float
    currency: str

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """The cost of a call, in the currency."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / 1e6


def price(path: Path, model: str) -> TokenPrice:
    """The price of a model. Raises UsageError if the file cannot be read, is invalid or has no price of it."""
    try:
        found = yamlfile.validate(PriceFile, yamlfile.read(path), str(path))
    except (OSError, SpecError) as error:
        why = f"{path}: {error.strerror}" if isinstance(error, OSError) else error.message
        raise UsageError(
            f"--author-prices: {why}", hint="docs/how-to/use-an-llm.md has an example of a price file"
        ) from None
    if model not in found.models:
        raise UsageError(
            f"{path} has no price of the model '{model}'; it has {', '.join(sorted(found.models)) or 'none'}",
            hint=f"add a line under 'models', e.g. {model}: {{prompt: 0.5, completion: 1.5}}",
        )
    one = found.models[model]
    return TokenPrice(one.prompt, one.completion, found.currency)
