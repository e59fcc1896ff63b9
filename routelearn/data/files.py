"""Read a file that a stranger wrote: check its size before reading, and report every failure in one clear line."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, BinaryIO
from weakref import WeakKeyDictionary

from routelearn.errors import InputError

MEGABYTE = 2**20
TEXT_LIMIT = 64 * MEGABYTE
STDIN = "-"
WESTERN = "read as Windows text (cp1252), since it is not UTF-8"  # a note
# What stands beyond ASCII in Western European names, addresses and remarks.
_LETTERS = r"\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u00ff\u0152\u0153"
_SIGNS = r"\u00a0\u00a1\u00a7\u00aa\u00ab\u00b0\u00b2-\u00b5\u00b7\u00ba-\u00bf"
_SIGNS += r"\u2013\u2014\u2018\u201a-\u201e\u2022\u2026\u20ac"
_KNOWN = re.compile(rf"[\x01-\x7f\u2019{_LETTERS}{_SIGNS}]*")
# What betrays another encoding: three accented letters in a row (Cyrillic, Greek), UTF-8 in parts, a sign or an
# apostrophe within a word (other than l'eau and O'Hara).
_FOREIGN = re.compile(
    rf"[{_LETTERS}]{{3}}|[\u00c2\u00c3][{_SIGNS}]|[A-Za-z{_LETTERS}][{_SIGNS}][a-z{_LETTERS}]"
    rf"|[A-Za-z{_LETTERS}]{{3}}\u2019(?!s\b)[a-z{_LETTERS}]"
)


def display(path: str | Path) -> str:
    """What messages call the source."""
    return "standard input" if str(path) == STDIN else str(path)


def read_bytes(path: str | Path, limit: int = TEXT_LIMIT) -> bytes:
    """The whole file (`-`: standard input), or InputError if it is missing, unreadable, empty or too large."""
    name = display(path)
    try:
        if str(path) == STDIN:
            return _heard(limit)
        if not str(path).strip():
            raise InputError("the name of a file is empty; give a file")
        file = Path(path)
        if file.is_dir():
            raise InputError(f"{name}: is a folder; a file is needed")
        size = file.stat().st_size  # known before a byte is read
        if size > limit:
            raise _too_large(name, limit, f"{size / MEGABYTE:.0f} MB")
        with file.open("rb") as handle:
            return _bounded(handle, name, limit)
    except FileNotFoundError:
        raise InputError(f"{name}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        if isinstance(error, InputError):
            raise
        raise InputError(f"{name}: cannot be read ({getattr(error, 'strerror', None) or error})") from None


_said: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()  # by stream


def _heard(limit: int) -> bytes:
    """Standard input, which can be read once: who asks again gets the same."""
    stream = sys.stdin.buffer
    if stream not in _said:
        _said[stream] = _bounded(stream, display(STDIN), limit)
    return _said[stream]


def _bounded(handle: BinaryIO, name: str, limit: int) -> bytes:
    """Pipes and devices have no size to ask for, so the read itself stops one byte past the limit."""
    data = handle.read(limit + 1)
    if len(data) > limit:
        raise _too_large(name, limit, "more")
    if not data.strip():
        raise InputError(f"{name}: the file is empty")
    return data


def _too_large(name: str, limit: int, size: str) -> InputError:
    return InputError(f"{name}: {size} is larger than the {limit / MEGABYTE:.0f} MB that are read; split the file")


def read_text(path: str | Path) -> str:
    """The file as text: UTF-8 (with or without BOM) or UTF-16 with BOM, line ends as they are."""
    return decode(read_bytes(path), display(path))


def decode_table(data: bytes, name: str) -> tuple[str, tuple[str, ...]]:
    """(the text, notes): as `decode`, but what spreadsheets of Western Europe save (cp1252) is read, too.

    Every byte stands for something in cp1252 and its neighbours, so the text must look like it; else it is refused.
    """
    try:
        return decode(data, name), ()
    except InputError:
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError:
            text = ""
        if not text.strip() or not _KNOWN.fullmatch(text) or _FOREIGN.search(text):
            raise
        return text, (WESTERN,)


def check_not_workbook(data: bytes, name: str) -> None:
    """What spreadsheets save by themselves is a zip or a binary file, not text."""
    zipped = data[:4] == b"PK\x03\x04"
    if data[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" or (
        zipped and (b"xl/workbook." in data or Path(name).suffix.lower() in (".xlsx", ".xlsm", ".xlsb"))
    ):
        raise InputError(f"{name}: an Excel workbook; save it as CSV (UTF-8)")
    if zipped and b"mimetypeapplication/vnd.oasis.opendocument" in data[:200]:
        raise InputError(f"{name}: an OpenDocument file; save it as CSV (UTF-8)")


def decode(data: bytes, name: str) -> str:
    check_not_workbook(data, name)
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(
            f"{name}, line {line}: not {encoding.removesuffix('-sig')} text; save the file as UTF-8"
        ) from None
    if "\0" in text:
        raise InputError(
            f"{name}, line {text[: text.index(chr(0))].count(chr(10)) + 1}: binary data; a text file is needed"
        )
    if not text.strip():
        raise InputError(f"{name}: the file is empty")
    return text
