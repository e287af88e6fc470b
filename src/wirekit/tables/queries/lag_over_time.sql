-- Lag of each group at each of its commits.
-- The lag is the number of messages left to read.
WITH events AS (
    SELECT call_topics.topic, call_topics.partition, calls.response_time AS time, call_topics.high_watermark,
           false AS commits, CAST(NULL AS STRING) AS group_id, CAST(NULL AS BIGINT) AS log_offset
    FROM call_topics JOIN calls ON calls.call_id = call_topics.call_id
    WHERE call_topics.high_watermark IS NOT NULL
    UNION ALL
    SELECT topic, partition, time, NULL, true, group_id, log_offset
    FROM offsets
    WHERE source = 'request' AND error IS NULL
), known AS (
    SELECT *, max(high_watermark) OVER (PARTITION BY topic, partition ORDER BY time) AS log_end FROM events
)
SELECT DISTINCT group_id, topic, partition, time, log_offset AS committed, log_end - log_offset AS lag
FROM known
WHERE commits AND log_end IS NOT NULL
ORDER BY group_id, topic, partition, time
