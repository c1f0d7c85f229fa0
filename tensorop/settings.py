"""The only reader of the environment. It knows:

- TENSOROP_CACHE: folder for downloads and builds (default: the user's cache folder)
- TENSOROP_PLUGINS: extra plug-in folders, ':' between (default: none)
- TENSOROP_OFFLINE: 1 to use the cache alone
- OPENAI_API_KEY, OPENAI_BASE_URL, TENSOROP_LLM_MODEL: the endpoint of the `llm` author
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import platformdirs

# Variables through which a shell or a distribution bends a BLAS: none may reach a baseline.
SCRUBBED_PREFIXES = ("OPENBLAS_", "OMP_", "GOMP_", "KMP_", "MKL_", "BLIS_", "DNNL_", "ONEDNN_", "VECLIB_", "GOTO_")

# Names under which people keep what opens something: no program that is started here needs one.
_SECRET = re.compile(
    r"(^|_)(API_?KEY|ACCESS_?KEY|SECRET_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)$", re.IGNORECASE
)


@dataclass(frozen=True)
class Settings:
    """What the environment says, read once."""

    cache: Path
    plugins: tuple[Path, ...]
    offline: bool
    llm_api_key: str | None
    llm_base_url: str | None
    llm_model: str | None


def read() -> Settings:
    """Reads the environment of this process."""
    env = os.environ
    cache = env.get("TENSOROP_CACHE")
    return Settings(
        cache=Path(cache) if cache else Path(platformdirs.user_cache_dir("tensorop")),
        plugins=tuple(Path(p) for p in env.get("TENSOROP_PLUGINS", "").split(":") if p),
        offline=env.get("TENSOROP_OFFLINE", "") not in ("", "0"),
        llm_api_key=env.get("OPENAI_API_KEY"),
        llm_base_url=env.get("OPENAI_BASE_URL"),
        llm_model=env.get("TENSOROP_LLM_MODEL"),
    )


def scrubbed_environment() -> dict[str, str]:
    """This process's environment without any variable that tunes or selects a BLAS, and without keys and tokens."""
    return {k: v for k, v in os.environ.items() if not k.startswith(SCRUBBED_PREFIXES) and not _SECRET.search(k)}


def plain_environment() -> dict[str, str]:
    """What any program needs of this process's environment, and no more."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}
