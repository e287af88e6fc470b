"""Frames of ZooKeeper clients and servers: a length, a header, a jute record.

Sources: NOTES.md. Field names are jute's, in snake_case.
"""

from __future__ import annotations

from wirekit.values import SymbolTable
from wirekit.wire import (
    Array,
    Bytes,
    Const,
    Default,
    Flag,
    If,
    IfMore,
    IfThenElse,
    Length,
    Node,
    RecordsToEnd,
    String,
    Struct,
    Switch,
    Symbols,
    Timestamp,
    context,
    int32,
    int64,
    this,
    uint8,
    unexplained,
)

OPERATIONS = SymbolTable(
    "operation",
    {
        -11: "closeSession",
        -10: "createSession",
        -1: "error",
        1: "create",
        2: "delete",
        3: "exists",
        4: "getData",
        5: "setData",
        6: "getACL",
        7: "setACL",
        8: "getChildren",
        9: "sync",
        11: "ping",
        12: "getChildren2",
        13: "check",
        14: "multi",
        15: "create2",
        16: "reconfig",
        17: "checkWatches",
        18: "removeWatches",
        19: "createContainer",
        20: "deleteContainer",
        21: "createTTL",
        22: "multiRead",
        100: "auth",
        101: "setWatches",
        102: "sasl",
        103: "getEphemerals",
        104: "getAllChildrenNumber",
        105: "setWatches2",
        106: "addWatch",
    },
)
ERRORS = SymbolTable(
    "error",
    {
        0: "OK",
        -1: "SYSTEMERROR",
        -2: "RUNTIMEINCONSISTENCY",
        -3: "DATAINCONSISTENCY",
        -4: "CONNECTIONLOSS",
        -5: "MARSHALLINGERROR",
        -6: "UNIMPLEMENTED",
        -7: "OPERATIONTIMEOUT",
        -8: "BADARGUMENTS",
        -12: "UNKNOWNSESSION",
        -13: "NEWCONFIGNOQUORUM",
        -14: "RECONFIGINPROGRESS",
        -100: "APIERROR",
        -101: "NONODE",
        -102: "NOAUTH",
        -103: "BADVERSION",
        -108: "NOCHILDRENFOREPHEMERALS",
        -110: "NODEEXISTS",
        -111: "NOTEMPTY",
        -112: "SESSIONEXPIRED",
        -113: "INVALIDCALLBACK",
        -114: "INVALIDACL",
        -115: "AUTHFAILED",
        -118: "SESSIONMOVED",
        -119: "NOTREADONLY",
        -120: "EPHEMERALONLOCALSESSION",
        -121: "NOWATCHER",
        -122: "REQUESTTIMEOUT",
        -123: "RECONFIGDISABLED",
        -124: "SESSIONCLOSEDREQUIRESASLAUTH",
        -125: "QUOTAEXCEEDED",
        -127: "THROTTLEDOP",
    },
)
XIDS = SymbolTable("xid", {-1: "notification", -2: "ping", -4: "auth", -8: "setWatches", 0: "connect"})
EVENTS = SymbolTable(
    "event",
    {
        -1: "None",
        1: "NodeCreated",
        2: "NodeDeleted",
        3: "NodeDataChanged",
        4: "NodeChildrenChanged",
        5: "DataWatchRemoved",
        6: "ChildWatchRemoved",
        7: "PersistentWatchRemoved",
    },
)
STATES = SymbolTable(
    "state",
    {
        -112: "Expired",
        0: "Disconnected",
        3: "SyncConnected",
        4: "AuthFailed",
        5: "ConnectedReadOnly",
        6: "SaslAuthenticated",
        7: "Closed",
    },
)

SIZE = "size" / Length(int32, frame=True)
XID = "xid" / Symbols(int32, XIDS)
USTRING = String(int32, null=-1)
BUFFER = Bytes(int32, null=-1)
BOOLEAN = Flag(uint8)
PATH = "path" / USTRING
WATCH = "watch" / BOOLEAN
VERSION = "version" / int32


def vector(element: Node) -> Array:
    """A jute vector: -1 is null."""
    return Array(int32, element, null=-1)


ACLS = vector(Struct("perms" / int32, "scheme" / USTRING, "id" / USTRING, name="ACL"))
STAT = Struct(
    "czxid" / int64 * "zxid of the transaction that created the node",
    "mzxid" / int64 * "zxid of the last change of its data",
    "ctime" / Timestamp(int64),
    "mtime" / Timestamp(int64),
    "version" / int32,
    "cversion" / int32 * "number of changes of its children",
    "aversion" / int32 * "number of changes of its ACL",
    "ephemeral_owner" / int64 * "session of an ephemeral node, else 0",
    "data_length" / int32,
    "num_children" / int32,
    "pzxid" / int64 * "zxid of the last change of its children",
    name="Stat",
)
NODE_STAT = "stat" / STAT
PATHS = vector(USTRING)

CREATE = Struct(PATH, "data" / BUFFER, "acl" / ACLS, "flags" / int32, name="CreateRequest")
DELETE = Struct(PATH, VERSION, name="DeleteRequest")
SET_DATA = Struct(PATH, "data" / BUFFER, VERSION, name="SetDataRequest")
CHECK = Struct(PATH, VERSION, name="CheckVersionRequest")
GET_DATA = Struct(PATH, WATCH, name="GetDataRequest")
GET_CHILDREN = Struct(PATH, WATCH, name="GetChildrenRequest")
TOKEN = Struct("token" / BUFFER, name="SASLToken")
WATCHES = (
    "relative_zxid" / int64,
    "data_watches" / PATHS,
    "exist_watches" / PATHS,
    "child_watches" / PATHS,
)

MULTI_END = b"\xff\xff\xff\xff\x01\xff\xff\xff\xff"
"""The MultiHeader that ends a multi: type -1, done, err -1."""


def multi(name: str, bodies: dict[int, Node]) -> Struct:
    """Operations, or their results, one after the other, each behind a MultiHeader."""
    part = Struct(
        "type" / Symbols(int32, OPERATIONS),
        "done" / Default(BOOLEAN, False),
        "err" / Default(Symbols(int32, ERRORS), -1),
        "body" / Switch(this.type, bodies),
        name=f"{name}Part",
    )
    return Struct("parts" / RecordsToEnd(part, until=MULTI_END), "end" / Const(Bytes(9), MULTI_END), name=name)


REQUESTS: dict[int, Node] = {
    1: CREATE,
    2: DELETE,
    3: Struct(PATH, WATCH, name="ExistsRequest"),
    4: GET_DATA,
    5: SET_DATA,
    6: Struct(PATH, name="GetACLRequest"),
    7: Struct(PATH, "acl" / ACLS, VERSION, name="SetACLRequest"),
    8: GET_CHILDREN,
    9: Struct(PATH, name="SyncRequest"),
    12: Struct(PATH, WATCH, name="GetChildren2Request"),
    13: CHECK,
    14: multi("MultiRequest", {1: CREATE, 2: DELETE, 5: SET_DATA, 13: CHECK, 15: CREATE}),
    15: CREATE,
    16: Struct(
        "joining_servers" / USTRING,
        "leaving_servers" / USTRING,
        "new_members" / USTRING,
        "cur_config_id" / int64,
        name="ReconfigRequest",
    ),
    17: Struct(PATH, "type" / int32, name="CheckWatchesRequest"),
    18: Struct(PATH, "type" / int32, name="RemoveWatchesRequest"),
    19: CREATE,
    20: DELETE,
    21: Struct(PATH, "data" / BUFFER, "acl" / ACLS, "flags" / int32, "ttl" / int64, name="CreateTTLRequest"),
    22: multi("MultiReadRequest", {4: GET_DATA, 8: GET_CHILDREN}),
    100: Struct("type" / int32, "scheme" / USTRING, "auth" / BUFFER, name="AuthPacket"),
    101: Struct(*WATCHES, name="SetWatches"),
    102: TOKEN,
    103: Struct("prefix_path" / USTRING, name="GetEphemeralsRequest"),
    104: Struct(PATH, name="GetAllChildrenNumberRequest"),
    105: Struct(*WATCHES, "persistent_watches" / PATHS, "persistent_recursive_watches" / PATHS, name="SetWatches2"),
    106: Struct(PATH, "mode" / int32, name="AddWatchRequest"),
}

CREATED = Struct(PATH, name="CreateResponse")
CREATED2 = Struct(PATH, NODE_STAT, name="Create2Response")
ONLY_STAT = Struct(NODE_STAT, name="StatResponse")
DATA = Struct("data" / BUFFER, NODE_STAT, name="GetDataResponse")
CHILDREN = Struct("children" / PATHS, name="GetChildrenResponse")
NOTHING = Struct(name="NoResponse")
FAILED = Struct("err" / Symbols(int32, ERRORS), name="ErrorResponse")

ANSWERS: dict[str, Node] = {
    "create": CREATED,
    "delete": NOTHING,
    "exists": ONLY_STAT,
    "getData": DATA,
    "setData": ONLY_STAT,
    "getACL": Struct("acl" / ACLS, NODE_STAT, name="GetACLResponse"),
    "setACL": ONLY_STAT,
    "getChildren": CHILDREN,
    "sync": Struct(PATH, name="SyncResponse"),
    "ping": NOTHING,
    "getChildren2": Struct("children" / PATHS, NODE_STAT, name="GetChildren2Response"),
    "check": NOTHING,
    "multi": multi("MultiResponse", {-1: FAILED, 1: CREATED, 2: NOTHING, 5: ONLY_STAT, 13: NOTHING, 15: CREATED2}),
    "create2": CREATED2,
    "reconfig": DATA,
    "checkWatches": NOTHING,
    "removeWatches": NOTHING,
    "createContainer": CREATED2,
    "deleteContainer": NOTHING,
    "createTTL": CREATED2,
    "multiRead": multi("MultiReadResponse", {-1: FAILED, 4: DATA, 8: CHILDREN}),
    "auth": NOTHING,
    "setWatches": NOTHING,
    "sasl": TOKEN,
    "getEphemerals": Struct("ephemerals" / PATHS, name="GetEphemeralsResponse"),
    "getAllChildrenNumber": Struct("total_number" / int32, name="GetAllChildrenNumberResponse"),
    "setWatches2": NOTHING,
    "addWatch": NOTHING,
    "closeSession": NOTHING,
}
EVENT = Struct("type" / Symbols(int32, EVENTS), "state" / Symbols(int32, STATES), PATH, name="WatcherEvent")

CONNECT_REQUEST = Struct(
    SIZE,
    "protocol_version" / Const(int32, 0),
    "last_zxid_seen" / int64,
    "time_out" / int32 * "milliseconds",
    "session_id" / int64 * "0 for a new session",
    "passwd" / BUFFER,
    "read_only" / IfMore(BOOLEAN) * "since 3.4",
    name="ConnectRequest",
    doc="the first frame of a client; it has no header",
)
CONNECT_RESPONSE = Struct(
    SIZE,
    "protocol_version" / Const(int32, 0),
    "time_out" / int32 * "milliseconds; 0 or less for a session that has expired",
    "session_id" / int64,
    "passwd" / BUFFER,
    "read_only" / IfMore(BOOLEAN) * "since 3.4",
    name="ConnectResponse",
    doc="the first frame of a server; it has no header",
)
REQUEST = Struct(
    SIZE,
    XID,
    "type" / Symbols(int32, OPERATIONS),
    "body" / IfMore(Switch(this.type, REQUESTS, default=unexplained())),
    name="Request",
    doc="a request of any type",
)
RESPONSE = Struct(
    SIZE,
    XID,
    "zxid" / int64 * "the last transaction that the server has seen; -1 in a notification",
    "err" / Symbols(int32, ERRORS),
    "body"
    / If(
        this.err == 0,
        IfThenElse(this.xid == -1, EVENT, IfMore(Switch(context.operation, ANSWERS, default=unexplained()))),
    ),
    name="Response",
    doc="a response, or a notification of a watch; context operation says what was asked for",
)
FIRST_NUMBER = Struct("size" / int32, "xid" / int32, name="FirstNumber", doc="what all frames begin with")
