"""Compute statistics on personal data without ever holding the data.

=============  ==========================================================================
you are        start with
=============  ==========================================================================
curious        :func:`local` and :func:`init`: a deployment or a first answer from a frame
a device       :class:`Stream`, or :class:`Session` to send frames yourself
an owner       :class:`Owner`
a consumer     :func:`query`, :class:`Consumer`
planning       :func:`explain`, :func:`suggest`, :func:`check`
=============  ==========================================================================

Further parts are :class:`Table` (encrypted tables whose answers are checked), :class:`Pass` (the access
pass) and :class:`Statistics` (sums over anonymous samples).
"""

from ._errors import (
    AlpheusError,
    CheckError,
    EventError,
    InputError,
    RefusedError,
    SchemaError,
    ServiceError,
    SessionError,
    UndecidedError,
    UsageError,
)
from ._native import __version__
from ._program import program
from .consumer import Answer, Consumer, Query, connect, query, results
from .design import (
    Change,
    Explanation,
    Finding,
    Listing,
    Project,
    Suggestion,
    Understood,
    check,
    explain,
    init,
    suggest,
)
from .deployment import Local, LocalOwner, local
from .owner import LogLine, Owner, StreamOwner
from .passes import Pass, PassAuth, PassSession
from .producer import Attribute, Schema, Sent, Session, Stream
from .rows import Column, Noise, Row, Rows
from .statistics import Aggregate, Contribution, Statistics
from .tables import Table

__all__ = [
    "Aggregate",
    "AlpheusError",
    "Answer",
    "Attribute",
    "Change",
    "CheckError",
    "Column",
    "Consumer",
    "Contribution",
    "EventError",
    "Explanation",
    "Finding",
    "InputError",
    "Listing",
    "Local",
    "LocalOwner",
    "LogLine",
    "Noise",
    "Owner",
    "Pass",
    "PassAuth",
    "PassSession",
    "Project",
    "Query",
    "RefusedError",
    "Row",
    "Rows",
    "Schema",
    "SchemaError",
    "Sent",
    "ServiceError",
    "Session",
    "SessionError",
    "Statistics",
    "Stream",
    "StreamOwner",
    "Suggestion",
    "Table",
    "UndecidedError",
    "Understood",
    "UsageError",
    "__version__",
    "check",
    "connect",
    "explain",
    "init",
    "local",
    "program",
    "query",
    "results",
    "suggest",
]
