"""The access log: a line of JSON for each request. It is written by a thread, and what it cannot write is counted."""

from __future__ import annotations

import json
import logging
import queue
import sys
import threading
import time
from datetime import UTC, datetime
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler
from typing import Any

from prometheus_client import Counter

from routelearn.data.files import STDIN
from routelearn.errors import InputError

WAITING = 10_000  # lines that a slow disk may owe
CLOSING = 2.0  # seconds that it may take to write the last ones
LONGEST = 200  # characters of a path


class AccessLog:
    """Appends to a file, which may be moved away (logrotate), or to standard output. Its failures fail no request."""

    def __init__(self, path: str, dropped: Counter):
        def drop(_: logging.LogRecord) -> None:
            dropped.inc()

        try:
            written = logging.StreamHandler(sys.stdout) if path == STDIN else WatchedFileHandler(path, encoding="utf-8")
        except OSError as error:
            words = f"{path}: the access log cannot be written ({error.strerror or error}); choose another --access-log"
            raise InputError(words) from None
        lines: queue.Queue[Any] = queue.Queue(WAITING)
        self.handler, self.listener = QueueHandler(lines), QueueListener(lines, written)
        for one in (self.handler, written):
            setattr(one, "handleError", drop)  # noqa: B010 (a method, as the type checker sees it)
        self.listener.start()

    def write(self, **told: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, **told}, separators=(",", ":"))
        self.handler.handle(logging.LogRecord("access", logging.INFO, "", 0, line, None, None))

    def close(self) -> None:
        """Write what is left; of a disk that hangs it does not wait for the end."""

        def stop() -> None:
            while True:
                try:
                    return self.listener.stop()
                except queue.Full:  # its own mark of the end found no place
                    time.sleep(0.05)

        stopping = threading.Thread(target=stop, daemon=True)
        stopping.start()
        stopping.join(CLOSING)
