"""Checks the environment's settings for the endpoint's client besides address and key: proxies, certificates, headers.

The client reads these variables itself; this module checks all before any work.
"""

from __future__ import annotations

import importlib.util
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from tensorop.author.llm import secret
from tensorop.errors import UsageError

Variables = Mapping[str, str]

_PROXIES = ("http_proxy", "https_proxy", "all_proxy")
_SCHEMES = ("http", "https", "socks5", "socks5h")
_HEADER = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_VALUE = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?)?")  # a header's value that HTTP allows
_OURS = ("accept-encoding", "content-encoding", "content-length", "content-type", "transfer-encoding")
_SECRET = re.compile(r"auth|key|token|secret|passw|cookie|credential", re.IGNORECASE)
_HASHED = re.compile(r"[0-9a-f]{8}\.\d+")


def require(variables: Variables, address: str) -> None:
    """Raises UsageError for a value that the client could not use; it names the variable and shows no password."""
    proxies = {name: value for name, value in variables.items() if name.lower() in _PROXIES}
    if proxies:
        _require_exceptions(variables)
    if not _bypassed_all(variables):
        for name, value in proxies.items():
            _require_proxy(name, value)
    _require_certificates(variables, address)
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        if name in variables and not _VALUE.fullmatch(variables[name]):
            raise UsageError(
                f"{name} is not a valid HTTP header value: it has a line end, a space at an end or a character beyond "
                "ASCII",
                hint=f"set {name} again, or unset it",
            )
    _headers(variables)


def proxy(variables: Variables, address: str) -> str | None:
    """The proxy for an address, without its password, and its variable; None without a proxy."""
    scheme = address.partition("://")[0].lower()
    by_kind = {name.lower(): name for name in variables}
    name = by_kind.get(f"{scheme}_proxy") or by_kind.get("all_proxy")
    host = (urlsplit(address).hostname or "").lower()
    if name is None or _bypassed_all(variables) or any(_is_of(host, one.lower()) for _, one in _exceptions(variables)):
        return None
    parts = _split(variables[name])
    where = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    return f"{parts.scheme}://{where} ({name})"


def _is_of(host: str, exception: str) -> bool:
    domain = exception.rpartition("://")[2].lstrip("*.")
    return host in (domain, domain.rpartition(":")[0], domain.strip("[]")) or host.endswith(f".{domain}")


def secrets(variables: Variables) -> tuple[str, ...]:
    """Passwords of proxies, and values of headers whose names look like credentials."""
    passwords = [
        found
        for name in variables
        if name.lower().endswith("_proxy")
        for found in secret.of_url(_whole(variables[name]))
    ]
    opening = [value.split()[-1] for name, value in _headers(variables) if value and _SECRET.search(name)]
    return (*passwords, *opening)


def _whole(value: str) -> str:
    return value if "://" in value else f"http://{value}"


def _split(value: str) -> SplitResult:
    """The parts of a proxy's address. Raises ValueError for an invalid one."""
    parts = urlsplit(_whole(value))
    if not parts.hostname or parts.port == 0 or re.search(r"[^\x21-\x7e]", value):
        raise ValueError("no host")
    return parts


def _require_proxy(name: str, value: str) -> None:
    """Errors do not show the value: it may contain a password."""
    try:
        scheme = _split(value).scheme
    except ValueError:
        raise UsageError(f"{name} must be the address of a proxy", hint="e.g. http://HOST:PORT, or unset it") from None
    if scheme not in _SCHEMES:
        raise UsageError(
            f"{name} names a proxy of the unsupported kind '{scheme}'; expected one of {', '.join(_SCHEMES)}",
            hint=f"write {name} as http://HOST:PORT or socks5://HOST:PORT, or unset it",
        )
    if scheme.startswith("socks") and importlib.util.find_spec("socksio") is None:
        raise UsageError(
            f"{name} names a proxy of the kind '{scheme}', which needs the Python package 'socksio'",
            hint=f"pip install socksio, or unset {name}",
        )


def _exceptions(variables: Variables) -> list[tuple[str, str]]:
    """Hosts that need no proxy, each after its variable."""
    return [
        (name, host.strip())
        for name, value in variables.items()
        if name.lower() == "no_proxy"
        for host in value.split(",")
        if host.strip()
    ]


def _bypassed_all(variables: Variables) -> bool:
    return any(host == "*" for _, host in _exceptions(variables))


def _require_exceptions(variables: Variables) -> None:
    for name, host in _exceptions(variables):
        try:
            good = not re.search(r"[^\x21-\x7e]", host) and bool(
                urlsplit(host if "://" in host else f"//{host}").netloc
            )
        except ValueError:
            good = False
        if not good:
            raise UsageError(
                f"{name}: {host[:100]!r} is not a host name",
                hint=f"separate hosts by commas, e.g. {name}=localhost,.example.com",
            )


def _require_certificates(variables: Variables, address: str) -> None:
    """Checks the file, or the folder if no file is named, as the client does."""
    if file := variables.get("SSL_CERT_FILE"):
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=file)
        except ssl.SSLError:
            why = "holds no certificates that can be read"
        except OSError as error:
            why = f"cannot be read: {error.strerror}"
        else:
            return
        raise UsageError(
            f"SSL_CERT_FILE is {file}, which {why}", hint="set it to a file of PEM certificates, or unset it"
        )
    if folder := variables.get("SSL_CERT_DIR"):
        folders = [Path(one) for one in folder.split(":") if one]
        there = [one for one in folders if one.is_dir()]
        if not there:
            raise UsageError(
                f"SSL_CERT_DIR is {folder}, which is not a folder",
                hint="set it to a folder of certificates, or unset it",
            )
        if address.lower().startswith("https:") and not any(
            _HASHED.fullmatch(entry.name) for one in there for entry in one.iterdir()
        ):
            raise UsageError(
                f"SSL_CERT_DIR is {folder}, which has no certificate named by its hash",
                hint="run `openssl rehash DIR`, or unset it",
            )


def _headers(variables: Variables) -> list[tuple[str, str]]:
    """The headers that the client adds to each request. Raises UsageError for an invalid one."""
    found = []
    for number, line in enumerate(variables.get("OPENAI_CUSTOM_HEADERS", "").split("\n"), 1):
        name, colon, value = (part.strip(" \t\r") for part in line.partition(":"))
        if not (name or colon):
            continue
        where = f"line {number} of OPENAI_CUSTOM_HEADERS"  # the line is not shown: it may contain a key
        if not colon or not _HEADER.fullmatch(name) or not _VALUE.fullmatch(value):
            raise UsageError(
                f"{where} is not a valid HTTP header",
                hint="write each header as `Name: value`, in ASCII, on its own line",
            )
        if name.lower() in _OURS:
            raise UsageError(f"{where} sets {name}, which tensorop sets itself", hint="remove that line")
        found.append((name, value))
    return found
