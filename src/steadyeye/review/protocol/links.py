"""The tokens of private links: made from a key, so that the same link can be shown again."""

import base64
import hashlib
import hmac
import os
import secrets
import tempfile
from pathlib import Path

from steadyeye.core.errors import UsageError

KEY_FILE = "review.key"
KEY_BYTES = 32


def read_key(folder: Path) -> bytes:
    """The key of a set's links, 32 bytes; made where there is none, readable by its owner alone.

    Raises `UsageError` where the file holds something else or can be neither read nor made.
    """
    path = folder / KEY_FILE
    try:
        if not path.is_file():
            _make_key(path)
        # a copy made by other tools may be open to others
        path.chmod(0o600)
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except OSError as error:
        raise UsageError(
            f"cannot use '{path}', the key of links: {error.strerror}; make the folder yours"
        ) from error
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise UsageError(
            f"'{path}' holds no key of links; put it back, or delete it and --renew the links"
        )
    return key


def _make_key(path: Path) -> None:
    """Writes a new key; of two processes that do so at once the first one's stays."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.")
    try:
        with os.fdopen(number, "w") as file:
            file.write(f"{secrets.token_hex(KEY_BYTES)}\n")
            file.flush()
            os.fsync(number)
        if not path.exists():
            Path(name).rename(path)
    finally:
        Path(name).unlink(missing_ok=True)


def make_nonce() -> str:
    """What makes a link different from the one before it; no secret."""
    return secrets.token_hex(16)


def make_token(key: bytes, nonce: str) -> str:
    """The token of a link: 256 bits that nobody finds without the key (HMAC-SHA256)."""
    digest = hmac.digest(key, f"steadyeye link {nonce}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def hash_token(token: str) -> str:
    """What is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
