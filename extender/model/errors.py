"""The error tree. Exceptions are for faults; expected refusals are values.

BerthError
├── WireError       a request or object that can't be read; names the field
├── SettingsError   a settings or policy file that can't be used; names field and line
└── KubeError       the API server said no, or did not answer
    ├── Gone        410: the resourceVersion is too old
    ├── Conflict    409
    └── NotFound    404
"""

from __future__ import annotations


class BerthError(Exception):
    """Base of all faults raised on purpose."""


class WireError(BerthError):
    """A body or object that can't be read. The text names the field."""


class SettingsError(BerthError):
    """A settings or policy file that can't be used. The text names file, line and field."""


class KubeError(BerthError):
    """The API server answered with a failure, or did not answer (`status` 0).

    `reason` is metav1.Status's own word (AlreadyExists and Conflict are both 409), `retry_after` the
    seconds that the server asked us to wait (429, 503).
    """

    def __init__(
        self, message: str, status: int = 0, *, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class Gone(KubeError):  # noqa: N818 - the API's own word for it
    """410: the watch or list must start anew."""


class Conflict(KubeError):  # noqa: N818 - likewise
    """409: somebody else wrote first."""


class NotFound(KubeError):  # noqa: N818 - likewise
    """404: the object or the resource does not exist."""
