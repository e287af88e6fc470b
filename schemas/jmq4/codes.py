"""The enumerations of JMQ4: commands, error codes, bit-field values.

Sources: document, 命令目录 and 错误码; JoyQueue command/JoyQueueCommandType.java, exception/JoyQueueCode.java:90-223,
domain/QosLevel.java, session/Language.java, message/Message.java:521-529, message/SourceType.java. Names are the
document's where it has one. The document's Chinese text follows the description in brackets.
"""

from __future__ import annotations

from wirekit.values import SymbolTable

COMMANDS = SymbolTable(
    "command",
    {
        1: ("ADD_CONNECTION", "first request of a connection (添加连接)"),
        -1: ("ADD_CONNECTION_ACK", "answer to ADD_CONNECTION (添加连接回复)"),
        2: ("REMOVE_CONNECTION", "the client is about to disconnect (移除连接)"),
        3: ("ADD_CONSUMER", "the client will consume topics (添加消费者)"),
        -3: ("ADD_CONSUMER_ACK", "answer to ADD_CONSUMER (添加消费者回复)"),
        4: ("REMOVE_CONSUMER", "the client stops consuming topics (移除消费者)"),
        5: ("ADD_PRODUCER", "the client will produce to topics (添加生产者)"),
        -5: ("ADD_PRODUCER_ACK", "answer to ADD_PRODUCER; the document's table misnames it REMOVE_PRODUCER_ACK"),
        6: ("REMOVE_PRODUCER", "the client stops producing to topics (移除生产者)"),
        7: ("HEARTBEAT", "keeps the connection alive (心跳)"),
        8: ("FETCH_HEALTH", "asks for the broker's health (拉取健康度)"),
        -8: ("FETCH_HEALTH_ACK", "answer to FETCH_HEALTH (拉取健康度回复)"),
        10: ("FETCH_CLUSTER", "asks for topics, partitions, brokers, policies (拉取元数据)"),
        -10: ("FETCH_CLUSTER_ACK", "answer to FETCH_CLUSTER (拉取元数据回复)"),
        20: ("FIND_COORDINATOR", "asks which broker coordinates topics (查找协调者)"),
        -20: ("FIND_COORDINATOR_ACK", "answer to FIND_COORDINATOR (查找协调者回复)"),
        21: ("FETCH_ASSIGNED_PARTITION", "asks a coordinator for partitions (拉取分配分区)"),
        -21: (
            "FETCH_ASSIGNED_PARTITION_ACK",
            "answer to FETCH_ASSIGNED_PARTITION (拉取分配分区回复); the document's table has no _ACK",
        ),
        30: ("FETCH_TOPIC_MESSAGE", "messages of topics; the broker chooses the position (拉取主题消息)"),
        -30: ("FETCH_TOPIC_MESSAGE_ACK", "answer to FETCH_TOPIC_MESSAGE (拉取主题消息ACK)"),
        31: ("FETCH_PARTITION_MESSAGE", "messages of partitions from an index on (拉取分区消息)"),
        -31: ("FETCH_PARTITION_MESSAGE_ACK", "answer to FETCH_PARTITION_MESSAGE (拉取分区消息ACK)"),
        32: ("COMMIT_ACK", "acknowledges messages one by one (提交ACK)"),
        -32: ("COMMIT_ACK_ACK", "answer to COMMIT_ACK (提交ACK回复)"),
        33: ("COMMIT_ACK_INDEX", "sets the acknowledged index of partitions (提交index)"),
        -33: ("COMMIT_ACK_INDEX_ACK", "answer to COMMIT_ACK_INDEX (提交index回复)"),
        34: ("FETCH_ACK_INDEX", "reserved, not implemented (拉取ack index（保留）)"),
        -34: ("FETCH_ACK_INDEX_ACK", "reserved, not implemented (拉取ack index回复)"),
        35: ("FETCH_INDEX", "asks for the acknowledged index of partitions (拉取ack index)"),
        -35: ("FETCH_INDEX_ACK", "answer to FETCH_INDEX (拉取ack index回复)"),
        50: ("PRODUCE_MESSAGE", "messages to store (生产消息)"),
        -50: ("PRODUCE_MESSAGE_ACK", "answer to PRODUCE_MESSAGE (生产消息回复)"),
        51: ("PRODUCE_MESSAGE_PREPARE", "begins a transaction (预提交生产事务)"),
        -51: ("PRODUCE_MESSAGE_PREPARE_ACK", "answer to PRODUCE_MESSAGE_PREPARE (预提交生产事务回复)"),
        52: ("PRODUCE_MESSAGE_COMMIT", "commits a transaction (提交生产事务)"),
        -52: ("PRODUCE_MESSAGE_COMMIT_ACK", "answer to PRODUCE_MESSAGE_COMMIT (提交生产事务回复)"),
        53: ("PRODUCE_MESSAGE_ROLLBACK", "rolls a transaction back (回滚生产事务)"),
        -53: ("PRODUCE_MESSAGE_ROLLBACK_ACK", "answer to PRODUCE_MESSAGE_ROLLBACK (回滚生产事务回复)"),
        54: ("FETCH_PRODUCE_FEEDBACK", "asks for transactions left open (拉取事务补偿)"),
        -54: ("FETCH_PRODUCE_FEEDBACK_ACK", "answer to FETCH_PRODUCE_FEEDBACK (拉取事务补偿回复)"),
        100: ("SUBSCRIBE", "MQTT service: subscribes apps to topics; not in the document"),
        -100: ("SUBSCRIBE_ACK", "MQTT service: answer to SUBSCRIBE; not in the document"),
        101: ("UNSUBSCRIBE", "MQTT service: ends subscriptions; not in the document"),
        102: ("GET_TOPICS", "MQTT service: asks for the topics of an app; not in the document"),
        -102: ("GET_TOPICS_ACK", "MQTT service: answer to GET_TOPICS; not in the document"),
        103: ("AUTHORIZATION", "MQTT service: presents a token; not in the document"),
        -128: ("BOOLEAN_ACK", "answer without content, also to every command that fails; not in the document"),
    },
)

DIRECTIONS = SymbolTable("direction", {0: ("REQUEST", "request (请求)"), 1: ("RESPONSE", "response (响应)")})

QOS_LEVELS = SymbolTable(
    "qos_level",
    {
        0: ("ONE_WAY", "no answer; the document calls it ACK_FLUSH"),
        1: ("RECEIVE", "answered when received; the document calls it ACK_RECEIVE"),
        2: ("PERSISTENCE", "answered when flushed to disk; the document calls it ACK_NO"),
        3: ("REPLICATION", "answered when replicated; the document calls it ACK_WRITE"),
        4: ("ALL", "answered by all replicas; since 4.2.0, does not fit the two bits of the header"),
    },
)

ERROR_CODES = SymbolTable(
    "error_code",
    {
        0: ("SUCCESS", "success (成功)"),
        1: ("CN_NO_PERMISSION", "no permission (无权限)"),
        2: ("CN_AUTHENTICATION_ERROR", "authentication failed (认证失败)"),
        3: ("CN_SERVICE_NOT_AVAILABLE", "service not available (服务不可用)"),
        4: ("CN_UNKNOWN_ERROR", "unknown error (未知异常)"),
        5: ("CN_DB_ERROR", "database error (数据库异常)"),
        6: ("CN_PARAM_ERROR", "wrong parameter (参数错误)"),
        7: ("CN_NEGATIVE_VOTE", "vote against (反对票)"),
        8: ("CN_CHECKSUM_ERROR", "checksum error (校验和出错)"),
        9: ("CN_INIT_ERROR", "service failed to initialise (服务初始化出错)"),
        20: ("CN_CONNECTION_ERROR", "connection error"),
        21: ("CN_CONNECTION_TIMEOUT", "connecting timed out"),
        22: ("CN_REQUEST_TIMEOUT", "request timed out"),
        23: ("CN_REQUEST_ERROR", "request could not be sent"),
        24: ("CN_REQUEST_EXCESSIVE", "too many asynchronous requests"),
        25: ("CN_THREAD_INTERRUPTED", "thread interrupted"),
        26: ("CN_THREAD_EXECUTOR_BUSY", "executor busy"),
        27: ("CN_COMMAND_UNSUPPORTED", "command not supported"),
        28: ("CN_DECODE_ERROR", "decoding failed"),
        29: ("CN_PLUGIN_NOT_IMPLEMENT", "plug-in not implemented"),
        30: ("CN_TRANSACTION_PREPARE_ERROR", "transaction could not be prepared"),
        31: ("CN_TRANSACTION_EXECUTE_ERROR", "local transaction failed"),
        32: ("CN_TRANSACTION_COMMIT_ERROR", "transaction could not be committed"),
        33: ("CN_TRANSACTION_ROLLBACK_ERROR", "transaction could not be rolled back"),
        34: ("CN_TRANSACTION_NOT_EXISTS", "no such transaction"),
        35: ("CN_TRANSACTION_UNSUPPORTED", "distributed transactions not supported"),
        36: ("CN_BATCH_NOT_ONE_PARTITION", "the messages of a batch are not of one partition"),
        71: ("CT_NO_CLUSTER", "the topic has no cluster"),
        72: ("CT_SEQUENTIAL_BROKER_AMBIGUOUS", "more than one broker for sequential messages"),
        73: ("CT_NO_CONSUMER_RECORD", "no record of consumption in the local offset store"),
        74: ("CT_LIMIT_REQUEST", "requests are throttled"),
        75: ("CT_LOW_VERSION", "client version too low"),
        76: ("CT_MESSAGE_BODY_NULL", "message without body"),
        91: ("SE_IO_ERROR", "I/O error (IO异常)"),
        92: ("SE_INDEX_OVERFLOW", "message index above the largest (消息序号超过最大值)"),
        93: ("SE_INDEX_UNDERFLOW", "message index below the smallest (消息序号小于最小值)"),
        94: ("SE_DISK_FULL", "disk full"),
        101: ("SE_DISK_FLUSH_SLOW", "flushing to disk is slow (磁盘刷新慢)"),
        107: ("SE_SERIALIZER_ERROR", "serialising failed (序列化/反序列化错误)"),
        108: ("SE_WRITE_TIMEOUT", "write timed out (写入超时)"),
        109: ("SE_WRITE_FAILED", "write failed (写入错误)"),
        110: ("SE_READ_FAILED", "read failed (读取错误)"),
        111: ("CY_REPLICATE_ENQUEUE_TIMEOUT", "replication timed out in the queue (复制入队超时)"),
        112: ("CY_REPLICATE_TIMEOUT", "replication timed out (复制超时)"),
        113: ("CY_REPLICATE_ERROR", "replication failed (复制异常)"),
        114: ("CY_GET_OFFSET_ERROR", "wrong replication position (主从复制位置错误)"),
        115: ("CY_FLUSH_OFFSET_ERROR", "flushing the offset failed (刷新偏移量异常)"),
        116: ("CY_STATUS_ERROR", "wrong synchronisation state (同步状态不对)"),
        117: ("CY_NOT_DEGRADE", "replication can't be degraded (复制不能降级)"),
        131: ("FW_CONNECTION_EXISTS", "connection exists (连接已存在)"),
        132: ("FW_CONNECTION_NOT_EXISTS", "no such connection (连接不存在)"),
        134: ("FW_PRODUCER_NOT_EXISTS", "no such producer (生产者不存在)"),
        136: ("FW_CONSUMER_NOT_EXISTS", "no such consumer (消费者不存在)"),
        137: ("FW_TRANSACTION_EXISTS", "transaction exists (事务已存在)"),
        138: ("FW_TRANSACTION_NOT_EXISTS", "no such transaction (事务不存在)"),
        139: ("FW_COMMIT_ERROR", "committing failed (提交事务失败)"),
        140: ("FW_CONSUMER_ACK_FAIL", "acknowledging failed (消费者ack失败)"),
        141: ("FW_PUT_MESSAGE_ERROR", "storing messages failed (添加消息失败)"),
        142: ("FW_GET_MESSAGE_ERROR", "fetching messages failed (获取消息失败)"),
        143: ("FW_FLUSH_SEQUENTIAL_STATE_ERROR", "refreshing the sequential service failed (刷新顺序消息服务异常)"),
        144: ("FW_PUT_MESSAGE_TOPIC_NOT_WRITE", "the topic forbids its group to send (该分组被主题设置为禁止发送)"),
        145: ("FW_GET_MESSAGE_TOPIC_NOT_READ", "the topic forbids its group to consume (该分组被主题设置为禁止消费)"),
        146: ("FW_PUT_MESSAGE_APP_CLIENT_IP_NOT_WRITE", "the app forbids this client to send (该连接被应用者禁止发送)"),
        147: (
            "FW_GET_MESSAGE_APP_CLIENT_IP_NOT_READ",
            "the app forbids this client to consume (该连接被应用者禁止消费)",
        ),
        148: ("FW_TRANSACTION_LIMIT", "too many open transactions of the topic (该主题未提交的事务数量达到限制数)"),
        149: ("FW_CONSUMER_REMOTE_ERROR", "consumed in another room already (已经开启跨机房消费，本机房不能消费)"),
        150: ("FW_ELECTION_ERROR", "election failed (选举异常)"),
        151: ("JA_COMMAND_ERROR", "agent: command failed"),
        152: ("JA_COMMAND_EXISTS", "agent: the command is running"),
        161: ("TN_COMMAND_NOT_EXISTS", "telnet: no such command"),
        162: ("TN_COMMAND_ERROR", "telnet: command failed"),
        163: ("TN_COMMAND_FORMAT_ERROR", "telnet: wrong format of a command"),
        164: ("TN_COMMAND_PWD_ERROR", "telnet: wrong password"),
        181: ("FW_COORDINATOR_NOT_AVAILABLE", "coordinator not available (协调者不可用)"),
        182: ("FW_COORDINATOR_PARTITION_ASSIGNOR_TYPE_NOT_EXIST", "no such way of assignment (协调者分配类型不存在)"),
        183: ("FW_COORDINATOR_PARTITION_ASSIGNOR_ERROR", "assignment failed (协调者分配错误)"),
        184: ("FW_FETCH_MESSAGE_INDEX_OUT_OF_RANGE", "index out of range (拉取消息index超出范围)"),
        185: ("FW_COORDINATOR_PARTITION_ASSIGNOR_NO_PARTITIONS", "nothing to assign (协调者分配错误，没有可用分区)"),
        186: ("FW_FETCH_TOPIC_MESSAGE_PAUSED", "consumption of the topic is paused (主题暂停消费)"),
        187: ("FW_FETCH_TOPIC_MESSAGE_BROKER_NOT_LEADER", "not the leader, can't fetch (拉取失败，不是该主题leader)"),
        188: ("FW_PRODUCE_MESSAGE_BROKER_NOT_LEADER", "not the leader, can't produce (发送失败，不是该主题leader)"),
        189: ("FW_TOPIC_NOT_EXIST", "no such topic (TOPIC不存在)"),
        190: ("FW_TOPIC_NO_PARTITIONGROUP", "the topic has no partition group (TOPIC无可用分组)"),
        191: ("FW_PARTITION_BROKER_NOT_LEADER", "not the leader of the partition"),
        192: ("FW_BROKER_NOT_READABLE", "the broker can't be read from"),
        193: ("FW_BROKER_NOT_WRITABLE", "the broker can't be written to"),
        200: ("TL_GET_INFO_NULL", "telnet: empty result"),
        240: ("RETRY_ADD", "adding a retry message failed"),
        241: ("RETRY_GET", "fetching retry messages failed"),
        242: ("RETRY_UPDATE", "updating a retry message failed"),
        243: ("RETRY_COUNT", "counting retry messages failed"),
        244: ("RETRY_DISABLED", "the retry service is switched off"),
        245: ("RETRY_TOKEN_LIMIT", "the retry service has no token left"),
        250: ("CONSUME_POSITION_NULL", "no position of consumption"),
        251: ("CONSUME_POSITION_UPDATE_ERROR", "updating the position of consumption failed"),
        252: ("CONSUME_POSITION_META_DATA_NULL", "no metadata for the position of consumption"),
        260: ("NSR_REGISTER_ERR_BROKER_NOT_EXIST", "no such broker; 4 in the one byte of the header's status"),
    },
)

LANGUAGES = SymbolTable(
    "language",
    dict(enumerate(("JAVA", "C", "CPP", "PYTHON", "RUBY", "DOTNET", "ERLANG", "GO", "OTHER"))),
)
"""Since JoyQueue 4.2.3 (Language.java:59-63)."""

OLD_LANGUAGES = SymbolTable(
    "language",
    dict(enumerate(("JAVA", "CPP", "PYTHON", "RUBY", "DOTNET", "ERLANG", "OTHER"))),
)
"""Up to JoyQueue 4.2.2."""

RETRY_TYPES = SymbolTable(
    "retry_type",
    {
        0: ("NONE", "consumed (空)"),
        1: ("TIMEOUT", "timed out, to be retried (超时)"),
        2: ("EXCEPTION", "failed, to be retried (异常)"),
        3: ("OTHER", "to be retried (其他)"),
    },
)

TRANSACTION_STATUS = SymbolTable("transaction_status", dict(enumerate(("UNKNOWN", "PREPARE", "COMMITTED", "ROLLBACK"))))

TOPIC_TYPES = SymbolTable(
    "topic_type",
    {
        -1: ("NONE", "no type (无类型); JoyQueue takes it for 0 in SUBSCRIBE_ACK"),
        0: ("TOPIC", "ordinary topic (普通主题)"),
        1: ("BROADCAST", "broadcast (广播)"),
        2: ("SEQUENTIAL", "sequential (顺序主题): Topic.Type; the clients' TopicType has none and takes it for 0"),
    },
)

SOURCES = SymbolTable(
    "source",
    {
        0: ("JMQ", "JMQ; INTERNAL and OTHER do not fit the two bits"),
        1: ("KAFKA", "Kafka: the body is in Kafka's format"),
        2: ("MQTT", "MQTT"),
        3: ("JOYQUEUE", "JoyQueue"),
    },
)

COMPRESSIONS = SymbolTable(
    "compression",
    {
        0: ("NONE", "not compressed"),
        1: ("ZIP", "a zip archive of one entry called 0"),
        2: ("ZLIB", "RFC 1950"),
        3: ("SNAPPY", "snappy's framing format"),
    },
)
"""As implemented (Message.java:521-529)."""

DOCUMENTED_COMPRESSIONS = SymbolTable("compression", {0: "SNAPPY", 1: "ZIP", 2: "ZLIB"})
"""Of the document; only meaningful if the message is compressed."""

ADDRESS_TYPES = SymbolTable(
    "address_type",
    {
        0: ("OTHER", "all 16 bytes count: IPv6, or the text of an MQTT client"),
        1: ("IPV4", "6 bytes count: port (little-endian) and IPv4 address"),
    },
)
"""As implemented (Serializer.java:177-179)."""

DOCUMENTED_ADDRESS_TYPES = SymbolTable("address_type", {0: "IPV4", 1: "IPV6"})
"""Of the document, which has the reverse order."""

CLIENT_TYPES = SymbolTable("client_type", {0: "JOYQUEUE", 1: "KAFKA", 2: "MQTT", 10: "OTHERS"})

SUBSCRIPTION_TYPES = SymbolTable("subscription_type", {1: "PRODUCTION", 2: "CONSUMPTION"})

ELECTION_TYPES = SymbolTable("election_type", {0: "RAFT", 1: "FIX"})
