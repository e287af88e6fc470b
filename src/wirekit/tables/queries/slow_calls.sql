-- The slowest calls, with their connection.
-- Fetches of messages are left out: they wait by design.
SELECT latency_us, api, client, topic, request_time,
       concat(client_address, ':', client_port, '>', server_address, ':', server_port) AS connection
FROM calls
WHERE latency_us IS NOT NULL AND api NOT IN ('fetch', 'FETCH_TOPIC_MESSAGE', 'FETCH_PARTITION_MESSAGE')
ORDER BY latency_us DESC, request_time, connection, call_id
LIMIT 10
