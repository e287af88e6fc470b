-- Messages fetched over the network that are also on disk.
-- Pass captures and log segments. `messages` counts the messages that consumers and followers fetched, `stored` those
-- that a replica has at the same offset, and `same` those that it has with the same value and timestamp. Both are 0 if
-- the segments of a partition are missing.
WITH found AS (
    SELECT wire.topic, wire.partition, wire.direction, max(disk.log_offset) AS stored,
           max(CASE WHEN disk.value IS NOT DISTINCT FROM wire.value
                     AND disk.timestamp_ms IS NOT DISTINCT FROM wire.timestamp_ms THEN disk.log_offset END) AS same
    FROM (SELECT DISTINCT topic, partition, direction, log_offset, value, timestamp_ms FROM messages
          WHERE direction IN ('fetched', 'replicated')) AS wire
    LEFT JOIN messages AS disk
        ON disk.direction = 'stored' AND disk.topic = wire.topic AND disk.partition = wire.partition
       AND disk.log_offset = wire.log_offset
    GROUP BY wire.topic, wire.partition, wire.direction, wire.log_offset, wire.value, wire.timestamp_ms
)
SELECT topic, partition, direction, count(*) AS messages, count(stored) AS stored, count(same) AS same
FROM found
GROUP BY topic, partition, direction
ORDER BY topic, partition, direction
