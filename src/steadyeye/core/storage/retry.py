"""Requests to a store: retried if that can help, otherwise a one-line error.

Hand-written, because s3fs and gcsfs each retry another choice of faults with their own pauses, and
neither has a message for users; `tenacity` would replace only the loop, a sixth of this file.
"""

import errno
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from steadyeye.core.errors import UsageError

TRIES = 8  # with pauses of 10 to 21 s in all, so that a store may restart meanwhile
FIRST = 0.2
LONGEST = 8.0
TRANSIENT_STATUS = frozenset({408, 409, 425, 429})
TRANSIENT_ERRNO = frozenset(
    getattr(errno, name)
    for name in ("EAGAIN", "EBUSY", "EPIPE", "EREMOTEIO", "ETIMEDOUT", "ENETUNREACH")
    if hasattr(errno, name)
)
# by name, because the packages are optional: broken connections of botocore and aiohttp
TRANSIENT_NAMES = frozenset(
    {
        *("HTTPClientError", "ConnectionError", "IncompleteRead", "FSTimeoutError"),
        *("ResponseParserError", "ResponseStreamingError", "ClientError", "HttpError"),
        *("TransportError", "ConnectError", "TimeoutException", "FlexibleChecksumError"),
    }
)
AGAIN = "what is finished is kept, run the same command again"
Result = TypeVar("Result")


class StorageError(UsageError):
    """A store that does not answer, refuses, or is gone: not a fault of a single sample."""


def retry_request(action: Callable[[], Result], doing: str, tries: int = TRIES) -> Result:
    """The result of `action`, tried `tries` times with growing pauses after transient faults.

    `doing`: such as "read 's3://bucket/key'", for the error. Raises `FileNotFoundError` and
    `FileExistsError` as they are, and `StorageError` for a store that refuses (at once) or that
    does not answer (after the last try).
    """
    for turn in range(tries):
        try:
            return action()
        except Exception as error:
            if not is_transient(error):
                raise _translate_error(doing, error) from error
            last = error
        if turn + 1 < tries:
            time.sleep(draw_pause(turn))
    raise StorageError(
        f"cannot {doing}: {describe_error(last)}, {tries} times over; when it answers: {AGAIN}"
    ) from last


def draw_pause(turn: int) -> float:
    """Seconds to wait after try `turn` (from 0): doubling up to 8, random in its upper half.

    The jitter keeps many workers from retrying at once; no result depends on it.
    """
    longest = min(FIRST * 2**turn, LONGEST)
    return random.uniform(longest / 2, longest)  # noqa: S311


def is_transient(error: BaseException) -> bool:
    """Whether the same request may succeed later: 5xx, 429, a lost connection, a timeout."""
    if isinstance(error, UsageError | FileNotFoundError | FileExistsError | PermissionError):
        return False
    status = _status(error)
    if status is not None:
        return status >= 500 or status in TRANSIENT_STATUS
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    if isinstance(error, OSError) and error.errno in TRANSIENT_ERRNO:
        return True
    return bool(TRANSIENT_NAMES & {kind.__name__ for kind in type(error).__mro__})


def describe_error(error: BaseException) -> str:
    """The store's own words on one line."""
    code, status = _code(error), _status(error)
    text = " ".join(str(getattr(error, "strerror", None) or error).split())[:200]
    kind = code or (str(status) if status else type(error).__name__)
    return f"{kind}: {text}" if text and text != kind else kind


def no_bucket(doing: str) -> StorageError:
    """The error for a missing bucket."""
    return StorageError(f"cannot {doing}: the bucket does not exist; {AGAIN} when it is there")


def _translate_error(doing: str, error: Exception) -> Exception:
    if isinstance(error, UsageError | FileExistsError):
        return error
    if _code(error) == "NoSuchBucket":
        return no_bucket(doing)
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "there is no such object", doing)
    if _is_refused(error):
        return StorageError(
            f"cannot {doing}: access denied ({describe_error(error)}); "
            "check the credentials and the policy"
        )
    return StorageError(f"cannot {doing}: {describe_error(error)}; check the address and the store")


def _is_refused(error: Exception) -> bool:
    """Whether the store refuses our credentials or our access."""
    if isinstance(error, PermissionError) or type(error).__name__ == "NoCredentialsError":
        return True
    # gcsfs reports 403 in words only
    return _status(error) in {401, 403} or str(error).startswith("Forbidden")


def _response(error: BaseException) -> Any:
    # s3fs translates botocore's error and keeps it as the cause
    for fault in (error, error.__cause__):
        response = getattr(fault, "response", None)
        if isinstance(response, dict):
            return response
    return {}


def _code(error: BaseException) -> str:
    return str(_response(error).get("Error", {}).get("Code", ""))


def _status(error: BaseException) -> int | None:
    code = _response(error).get("ResponseMetadata", {}).get("HTTPStatusCode")
    if code is None:
        # gcsfs has `code`, requests and httpx a response with a status
        response = getattr(error, "response", None)
        code = getattr(error, "code", None) or getattr(response, "status_code", None)
    try:
        return int(code) if code is not None else None
    except (TypeError, ValueError):
        return None
