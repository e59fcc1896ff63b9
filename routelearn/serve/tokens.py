"""Who may ask, and how much: tokens by name, each with quotas of its own. Only hashes of tokens are kept."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from routelearn.data.numbers import shown
from routelearn.errors import InputError
from routelearn.serve.limits import over

FROM_ENVIRONMENT = "ROUTELEARN_TOKEN"  # the variable, and the name of its token in logs and counters
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
DIGEST = re.compile(r"[0-9a-f]{64}")
SHORTEST = 16  # characters of a token in a file
MOST = 1000  # tokens in a file: each is compared with every request, and is a label of the counters
REMEDY = "make one with: python -c 'import secrets; print(secrets.token_urlsafe(32))'"


@dataclass(frozen=True)
class Token:
    """One entry of the file; a quota that is None does not bind."""

    name: str
    sha256: str
    requests_per_minute: float | None = None
    search_seconds_per_hour: float | None = None  # of service workers
    jobs: int | None = None  # unfinished at once


ANYONE = Token("", "")  # where the service asks for no token
QUOTAS = tuple(one.name for one in fields(Token) if one.default is None)
KEYS = ("name", "token", "sha256", *QUOTAS)


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def read_tokens(path: str) -> list[Token]:
    """The tokens of a TOML or JSON file; InputError with the entry and the remedy."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        document = json.loads(text) if path.lower().endswith(".json") else tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except ValueError as error:  # of either format; also not UTF-8
        kind = "JSON" if path.lower().endswith(".json") else "TOML"
        raise InputError(f"{path}: not {kind} ({' '.join(str(error).split())})") from None
    entries = document.get("token") if isinstance(document, dict) and set(document) == {"token"} else None
    if not isinstance(entries, list) or not entries:
        raise InputError(f'{path}: a list of entries called "token" is needed, and nothing else ([[token]] in TOML)')
    if len(entries) > MOST:
        raise InputError(f"{path}: {len(entries)} tokens; at most {MOST} are read")
    tokens: list[Token] = []
    for row, entry in enumerate(entries, 1):
        token = _token(f"{path}, token {row}", entry)
        for other_row, other in enumerate(tokens, 1):
            if token.name == other.name:
                raise InputError(f"{path}, token {row}: the name {token.name} is that of token {other_row}; change one")
            if token.sha256 == other.sha256:
                raise InputError(f"{path}, token {row}: the same token as {other.name}; {REMEDY}")
        tokens.append(token)
    return tokens


def _token(where: str, entry: Any) -> Token:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: holds {shown(entry)}; keys and values are needed ({', '.join(KEYS)})")
    name = entry.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"{where}: name is {shown(name)}; up to 40 letters, digits, dots and dashes are needed")
    where = f"{where} ({name})"
    if name == FROM_ENVIRONMENT:
        raise InputError(f"{where}: this name is for the token of the environment; choose another")
    if unknown := [key for key in entry if key not in KEYS]:
        raise InputError(f"{where}: {shown(unknown[0])} is not known; the keys are {', '.join(KEYS)}")
    if ("token" in entry) == ("sha256" in entry):
        raise InputError(f"{where}: give either token or sha256, the hash of one; {REMEDY}")
    if "token" in entry and (not isinstance(entry["token"], str) or len(entry["token"]) < SHORTEST):
        raise InputError(f"{where}: the token has less than {SHORTEST} characters; {REMEDY}")
    digest = digest_of(entry["token"]) if "token" in entry else entry["sha256"]
    if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
        raise InputError(f"{where}: sha256 is not 64 hexadecimal digits in lower case, as sha256sum prints them")
    for key in QUOTAS:
        value: Any = entry.get(key)
        number = isinstance(value, int if key == "jobs" else int | float) and not isinstance(value, bool)
        if key in entry and not (number and 0 < value < 1e12):
            kind = "a whole number" if key == "jobs" else "a number"
            raise InputError(
                f"{where}: {key} is {shown(value)}; {kind} above 0 is needed, or leave it out for no limit"
            )
    return Token(name, digest, *(entry.get(key) for key in QUOTAS))


# ---------------------------------------------------------------------------------------------- allowances


class Allowance:
    """So much in a period, refilled evenly. It may be overdrawn by what could not be known before."""

    def __init__(self, limit: str, most: float, period: float):
        self.limit, self.most, self.rate = limit, most, most / period
        self.left, self.at = most, time.monotonic()

    def take(self, amount: float, what: str) -> None:
        """Raises the refusal 429 with the seconds until there is enough; 422 if there never will be."""
        now = time.monotonic()
        self.left, self.at = min(self.most, self.left + (now - self.at) * self.rate), now
        if amount > self.most:
            raise over(422, self.limit, self.most, what)
        if amount > max(self.left, 0.0):  # what costs nothing is possible also while something is owed
            raise over(429, self.limit, self.most, what, retry_after=(amount - self.left) / self.rate)
        self.left -= amount

    def give_back(self, amount: float) -> None:
        self.left += amount


class Caller:
    """Whoever sent a request: the owner of a token, or anyone where the service asks for none."""

    def __init__(self, token: Token = ANYONE):
        self.name, self.sha256, self.jobs = token.name, token.sha256, token.jobs
        self.requests = self.search = None
        if token.requests_per_minute is not None:
            self.requests = Allowance("requests_per_minute", max(1.0, token.requests_per_minute), 60.0)
        if token.search_seconds_per_hour is not None:
            self.search = Allowance("search_seconds_per_hour", token.search_seconds_per_hour, 3600.0)

    def count_request(self) -> None:
        if self.requests is not None:
            self.requests.take(1.0, f"too many requests with the token {self.name}")

    def reserve(self, seconds: float) -> None:
        """Set search time aside, before it is known how much of it is used."""
        if self.search is not None:
            self.search.take(seconds, f"{seconds:g} more seconds of search with the token {self.name}")

    def settle(self, reserved: float, spent: float) -> None:
        if self.search is not None:
            self.search.give_back(reserved - spent)


class Callers:
    """All tokens that are accepted; none: everybody is."""

    def __init__(self, tokens: Sequence[Token]):
        self.known = [Caller(token) for token in tokens]
        self.anyone = Caller()

    def find(self, authorization: bytes) -> Caller | None:
        """Whose token the header has. Every one is compared, so that time tells nothing."""
        if not self.known:
            return self.anyone
        scheme, _, given = authorization.partition(b" ")
        digest = hashlib.sha256(given.strip()).hexdigest()
        found = None
        for caller in self.known:
            if hmac.compare_digest(digest, caller.sha256):
                found = caller
        return found if scheme.lower() == b"bearer" else None
