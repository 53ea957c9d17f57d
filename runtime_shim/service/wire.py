"""The service's protocol: a frame is a 32-bit little-endian length, then that many bytes of
JSON."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

from sassxlate.errors import ServiceError

FRAME_MAX = 1 << 20
_HEAD = struct.Struct("<I")


def encode(message: dict[str, Any]) -> bytes:
    """Encodes a message as one frame."""
    body = json.dumps(message, separators=(",", ":")).encode()
    return _HEAD.pack(len(body)) + body


class FrameReader:
    """Collects bytes and yields the messages in them; bounded by ``FRAME_MAX``."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Adds bytes; returns the messages that they complete.  ServiceError SX0903 for an invalid
        frame."""
        self._buffer += data
        messages: list[dict[str, Any]] = []
        while len(self._buffer) >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer)
            if size > FRAME_MAX:
                raise ServiceError("SX0903", f"a frame of {size} bytes")
            end = _HEAD.size + size
            if len(self._buffer) < end:
                break
            body = bytes(self._buffer[_HEAD.size : end])
            del self._buffer[:end]
            messages.append(_object(body))
        return messages


def _object(body: bytes) -> dict[str, Any]:
    try:
        message: object = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise ServiceError("SX0903", "a frame that is not JSON") from None
    if not isinstance(message, dict):
        raise ServiceError("SX0903", "a frame that is not a JSON object")
    return {str(k): v for k, v in message.items()}  # pyright: ignore


def receive(connection: socket.socket) -> dict[str, Any] | None:
    """Wait for one message; None if the other side has closed."""
    reader = FrameReader()
    while True:
        # One frame at a time: never read into the next one, which would be lost with the reader.
        data = connection.recv(1 << 16)
        if not data:
            return None
        messages = reader.feed(data)
        if messages:
            return messages[0]
