"""A file with a key of before is refused with the sentence that says the key of now."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from tensorop.errors import SpecError
from tensorop.specs import yamlfile
from tensorop.specs.frontmatter import TemplateHead
from tensorop.specs.operators import BlockingSpec, DirectSpec, OperatorSpec
from tensorop.specs.primitives import SetSpec, TypeSpec

OF_TYPES = ("packed", "packed_vector", "stored", "stored_vector", "sums")
PLACES: list[tuple[type[BaseModel], str]] = [
    (BlockingSpec, "at_call"),
    (DirectSpec, "most"),
    (OperatorSpec, "drafts"),
    (SetSpec, "words"),
    (TemplateHead, "starts"),
    *((TypeSpec, key) for key in OF_TYPES),
]


@pytest.mark.parametrize(("schema", "key"), PLACES)
def test_a_key_of_before_names_the_key_of_now(schema: type[BaseModel], key: str) -> None:
    with pytest.raises(SpecError) as caught:
        yamlfile.validate(schema, {key: "x"}, "mine.yaml")
    assert f"mine.yaml: key '{key}' is called '{yamlfile.RENAMED[key]}' now" in caught.value.message.splitlines()


def test_each_key_of_before_has_its_place() -> None:
    assert {key for _, key in PLACES} == yamlfile.RENAMED.keys()
