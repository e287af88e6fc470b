-- Committed positions and lag of each group by partition.
-- The lag is the highest high watermark that a fetch returned (`log_end`), minus the position. It is null if no
-- captured fetch of the partition returned one. The client is the last one that committed a position. A position whose
-- deletion is stored in `__consumer_offsets` is left out.
WITH ends AS (
    SELECT topic, partition, max(high_watermark) AS log_end
    FROM call_topics
    WHERE high_watermark IS NOT NULL
    GROUP BY topic, partition
), commits AS (
    SELECT offsets.*, max_by(calls.client, requested) OVER of_partition AS client,
           max_by(calls.client_address, requested) OVER of_partition AS client_address,
           row_number() OVER latest_first AS latest
    FROM (
        SELECT group_id, topic, partition, log_offset, time, call_id,
               CASE WHEN source = 'request' THEN time END AS requested
        FROM offsets
        WHERE error IS NULL AND (log_offset IS NOT NULL OR deleted)
    ) AS offsets
    LEFT JOIN calls ON calls.call_id = offsets.call_id
    WINDOW of_partition AS (PARTITION BY offsets.group_id, offsets.topic, offsets.partition),
           latest_first AS (PARTITION BY offsets.group_id, offsets.topic, offsets.partition
                            ORDER BY offsets.time DESC, offsets.log_offset DESC)
)
SELECT commits.group_id, commits.topic, commits.partition, commits.log_offset AS committed, ends.log_end,
       ends.log_end - commits.log_offset AS lag, date_trunc('second', commits.time) AS committed_at,
       commits.client, commits.client_address
FROM commits LEFT JOIN ends ON ends.topic = commits.topic AND ends.partition = commits.partition
WHERE commits.latest = 1 AND commits.log_offset IS NOT NULL
ORDER BY lag DESC, commits.group_id, commits.topic, commits.partition
