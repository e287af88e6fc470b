-- Commits of clients with the times of storage and expiry.
-- Pass captures, and the segments of `__consumer_offsets`.
SELECT asked.group_id, asked.topic, asked.partition, asked.log_offset AS committed, asked.time AS committed_at,
       min(stored.commit_time) AS stored_at, min(stored.expire_time) AS expires_at
FROM offsets AS asked
JOIN offsets AS stored
    ON stored.source = 'stored' AND stored.group_id = asked.group_id AND stored.topic = asked.topic
   AND stored.partition = asked.partition AND stored.log_offset = asked.log_offset
   AND stored.commit_time >= date_trunc('millisecond', asked.time)
WHERE asked.source = 'request'
GROUP BY asked.group_id, asked.topic, asked.partition, asked.log_offset, asked.time
ORDER BY asked.time, asked.topic, asked.partition
