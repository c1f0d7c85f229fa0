"""Keeps the API key, in any recognisable form, out of terminal, journal and transcripts."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus, urlsplit

from tensorop.errors import UsageError

SHOWN = "[key]"
SHORTEST = 6  # characters; a shorter secret would match too much harmless text
# Line breaks and characters of zero width can occur inside a secret.
_BETWEEN = re.compile(r"[\s\u200b-\u200f\u2060\ufeff]+")
_KEY = re.compile(r"[\x21-\x7e]{1,1024}")


def require_key(key: str) -> None:
    """Raises UsageError unless an HTTP header can carry the key; the message shows no part of it."""
    if not _KEY.fullmatch(key):
        where = next((i for i, c in enumerate(key) if not "\x21" <= c <= "\x7e"), None)
        what = (
            f"has {len(key)} characters; at most 1024 make a key"
            if where is None
            else f"has a character at {where + 1} of {len(key)} that no key has: a space, a line end or beyond ASCII"
        )
        raise UsageError(f"OPENAI_API_KEY {what}", hint="set it again without line ends and spaces")


class Scrubber:
    """Replaces each form of a secret in a text by `[key]`, in time linear in the text's length."""

    def __init__(self, *secrets: str) -> None:
        kept = [secret for secret in secrets if len(secret) >= SHORTEST]
        self._forms = sorted({_BETWEEN.sub("", form.casefold()) for secret in kept for form in _forms(secret)})

    def __call__(self, text: str) -> str:
        bare = _BETWEEN.sub("", text.casefold())
        spans = sorted(span for form in self._forms for span in _found(form, bare))
        if not spans:
            return text
        # The position in the text of each character of `bare`; case folding can expand one character to several.
        places = [at for at, c in enumerate(text) for _ in _BETWEEN.sub("", c.casefold())]
        out: list[str] = []
        at = 0
        for begin, end in spans:
            if places[begin] >= at:
                out += [text[at : places[begin]], SHOWN]
            at = max(at, places[end - 1] + 1)
        return "".join([*out, text[at:]])


def _found(form: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(form)
    while at >= 0:
        yield at, at + len(form)
        at = text.find(form, at + len(form))


def of_url(url: str | None) -> tuple[str, ...]:
    """The password in an address, if there is one."""
    try:
        password = urlsplit(url).password if url else None
    except ValueError:
        return ()
    return (password,) if password else ()


def _forms(secret: str) -> set[str]:
    raw = secret.encode()
    forms = {secret, secret[::-1], quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], raw.hex()}
    forms |= {secret.replace("/", "\\/"), "".join(f"\\u{ord(c):04x}" for c in secret), " ".join(map(str, raw))}
    forms |= {"".join(f"&#{byte};" for byte in raw), "".join(f"%{byte:02x}" for byte in raw)}
    forms |= {"".join(f"\\x{byte:02x}" for byte in raw)}
    for shift in range(3):  # base64 of a text around the secret: the digits that do not depend on its neighbours
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode(b"\0" * shift + raw).decode().rstrip("=")
            first = (shift * 8 + 5) // 6
            last = (shift + len(raw)) * 8 // 6
            forms.add(whole[first:last])
    return {form for form in forms if len(form) >= SHORTEST}
