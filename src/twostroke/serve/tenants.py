"""Who may share KV and draft history with whom: a namespace the server derives, which no client can choose.

Two requests share only when both the API key and the `cache_salt` agree.  The namespace is keyed with a secret of this
process, so it tells nothing about either, and a client cannot aim for another's.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from twostroke.errors import Unauthorized


@dataclass(frozen=True)
class Tenants:
    """The API keys that open the door (none: it is open) and the secret that derives namespaces."""

    keys: Sequence[str] = ()
    secret: bytes = field(default_factory=lambda: os.urandom(32), repr=False)

    def admit(self, authorization: str | None) -> str:
        """The API key of an `Authorization: Bearer` header, "" where none is required.

        Every known key is compared in constant time.  Raises `Unauthorized`.
        """
        if not self.keys:
            return ""
        scheme, _, given = (authorization or "").partition(" ")
        offered = given.strip().encode("utf-8", "replace") if scheme.lower() == "bearer" else b""
        matches = [hmac.compare_digest(key.encode("utf-8"), offered) for key in self.keys]
        if not any(matches):
            problem = "a wrong API key" if offered else "no API key"
            raise Unauthorized(f"{problem} was sent; send the header 'Authorization: Bearer KEY'")
        return self.keys[matches.index(True)]

    def namespace(self, key: str, *salts: str | None) -> str:
        """A hex name for this key and what the client narrows it with; "" when there is nothing of either."""
        if not key and not any(salts):
            return ""
        parts = [part.encode("utf-8") for part in (key, *(salt or "" for salt in salts))]
        message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return hmac.new(self.secret, message, "sha256").hexdigest()
