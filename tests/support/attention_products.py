"""Products of attention for a device, whose kernels are made up."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tensorop.author import offline
from tensorop.cuda import backend as cuda
from tensorop.cuda import job_kernels, product
from tensorop.cuda.choose import Layout
from tensorop.cuda.compile import Built
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.library import LibraryVariant
from tensorop.cuda.product import Content
from tensorop.model.point import Point
from tensorop.package import publish
from tensorop.specs import operators, platforms

ATTENTION, SM80, SM90 = operators.load("attention"), platforms.load("cuda-sm80"), platforms.load("cuda-sm90")
DECODE, MMA, WGMMA = offline.templates(ATTENTION.folder, "attention", suffix=cuda.SUFFIX)


COMBINE = b"kit tensorop_combine\0"  # an image, as the fake driver reads it


@cache
def layout(masked: int, hopper: bool = False) -> Layout:
    templates, platform = ([WGMMA, MMA, DECODE], SM90) if hopper else ([MMA, DECODE], SM80)
    return Layout.of(ATTENTION.on_device, templates, device_numbers(platform), (masked,))


def made(folder: Path, dtype: str, image: bytes, hopper: bool = False) -> Path:
    """A product with some variants, whose kernels are made up; ten without `hopper`."""
    variants = []
    for masked in (0, 1):
        of = layout(masked, hopper)
        places = of.chosen([(1, 4, 4, 1024, 1024, 128), (1, 4, 4, 64, 64, 64)], 3)
        packed = reversed(of.seeds()[-len(DECODE.seed_configurations) :])
        places += {of.candidate(place).numbers["lists"]: place for place in packed}.values()  # the first of each
        if hopper:
            of_lists = [Point.of(one) for one in WGMMA.seed_configurations if dict(one)["lists"]]
            places += [place for place in of.seeds() if of.candidate(place).point in of_lists][:1]
        variants += [LibraryVariant(of.candidate(place), dtype, 0) for place in places]
    records = [job_kernels.variant_record(one.candidate, Built(b"x", 0), 0) for one in variants]
    facts = {"measured": False, "said": cuda.NOT_MEASURED}
    whole = product.product(
        Content(ATTENTION, SM90 if hopper else SM80, variants, records, [image, COMBINE], {0: "a kernel"}, facts)
    )
    publish.publish(publish.stage(whole, folder), folder)
    return folder
