-- Produced messages that no consumer received in these captures.
-- A produced message has no offset yet, so it is identified by key and value.
SELECT produced.topic, produced.partition, count(*) AS messages, min(produced.time) AS since
FROM messages AS produced
WHERE produced.direction = 'produced' AND NOT EXISTS (
    SELECT 1 FROM messages AS delivered
    WHERE delivered.direction IN ('fetched', 'pushed') AND delivered.topic = produced.topic
      AND delivered.value IS NOT DISTINCT FROM produced.value AND delivered.key IS NOT DISTINCT FROM produced.key
)
GROUP BY produced.topic, produced.partition
ORDER BY messages DESC, produced.topic, produced.partition
