"""Reads the environment; no other module does. `VARIABLES` lists the variables that it uses.

The client of the `llm` author's endpoint reads those in `CLIENT` and proxies itself; here they are read to check them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

# Variable -> its meaning and default; docs/reference/environment.md is generated from it.
VARIABLES = {
    "TENSOROP_CACHE": ("Folder for downloads and builds.", "`tensorop` in the user's cache folder (`~/.cache`)"),
    "TENSOROP_OBJECTS": (
        "Folder of compiled candidates that jobs share. It takes those of shipped templates alone, and nothing removes "
        "them.",
        "none; each job keeps its own below `--out` while it runs",
    ),
    "TENSOROP_PLUGINS": ("Plug-in folders in addition to `--plugins`, separated by `:`.", "none"),
    "TENSOROP_OFFLINE": ("`1`: download nothing; use the cache only. The same as `--offline`.", "`0`"),
    "TENSOROP_LLM_MODEL": ("Name of the model that `--author llm` asks.", "none; `--author llm` needs it"),
    "TENSOROP_LLM_PROMPT_TOKENS": (
        "Most tokens of a question for a new template, estimated at four characters each; its least important sections "
        "are left out above.",
        "`16000`",
    ),
    "OPENAI_API_KEY": ("Key for the endpoint of `--author llm`.", "none; a server of your own may need none"),
    "OPENAI_BASE_URL": (
        "Address of an OpenAI-compatible server, for example `http://localhost:8000/v1`.",
        "the endpoint of the `openai` package",
    ),
}

# Variables that tune or select a BLAS; they must not reach a baseline.
SCRUBBED_PREFIXES = ("OPENBLAS_", "OMP_", "GOMP_", "KMP_", "MKL_", "BLIS_", "DNNL_", "ONEDNN_", "VECLIB_", "GOTO_")

# Names of variables with secrets; no program that tensorop starts gets them.
_SECRET = re.compile(
    r"(^|_)(API_?KEY|ACCESS_?KEY|SECRET_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)$", re.IGNORECASE
)


CLIENT = (
    "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_CUSTOM_HEADERS", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE",
)  # fmt: skip
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")  # compared in upper case


@dataclass(frozen=True)
class Settings:
    """The settings of the environment, read once."""

    cache: Path
    plugins: tuple[Path, ...]
    offline: bool
    llm_api_key: str | None
    llm_base_url: str | None
    llm_model: str | None
    llm_prompt_tokens: str | None = None
    objects: Path | None = None  # compiled candidates that jobs share
    client: Mapping[str, str] = field(default_factory=dict)  # variables that the endpoint's client reads


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
        objects=Path(env["TENSOROP_OBJECTS"]).absolute() if env.get("TENSOROP_OBJECTS") else None,
        llm_prompt_tokens=env.get("TENSOROP_LLM_PROMPT_TOKENS"),
        client={**{name: env[name] for name in CLIENT if env.get(name)}, **_proxies(env)},
    )


def _proxies(env: Mapping[str, str]) -> dict[str, str]:
    """The effective proxies: a lower-case name overrides an upper-case one, even when empty."""
    names = {name.lower(): name for name in sorted(env) if name.lower() in _PROXIES}  # upper case sorts first
    return {name: env[name] for name in names.values() if env[name]}


def scrubbed_environment() -> dict[str, str]:
    """This process's environment without any variable that tunes or selects a BLAS, and without keys and tokens."""
    return {k: v for k, v in os.environ.items() if not k.startswith(SCRUBBED_PREFIXES) and not _SECRET.search(k)}


def recording_environment(libraries: Sequence[Path], record: Path) -> dict[str, str]:
    """This process's environment, with the recorder of BLAS calls, the first library, in front of preloaded ones."""
    preloaded = [*map(str, libraries), os.environ.get("LD_PRELOAD", "")]
    return {**os.environ, "TENSOROP_RECORD": str(record), "LD_PRELOAD": ":".join(filter(None, preloaded))}


def plain_environment() -> dict[str, str]:
    """The part of this process's environment that every program needs."""
    return {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR", "LANG") if name in os.environ}
