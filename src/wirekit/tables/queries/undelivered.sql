-- Produced messages that no consumer received in these captures.
-- A produced message has no offset yet, so it is identified by key and value. `refused` counts the messages whose call
-- failed: the server answered with an error, so it did not store them.
SELECT produced.topic, produced.partition, count(*) AS messages, count(failed.call_id) AS refused,
       min(produced.time) AS since
FROM messages AS produced
LEFT JOIN (SELECT DISTINCT call_id, topic, partition FROM call_topics WHERE error IS NOT NULL) AS failed
    ON failed.call_id = produced.call_id AND failed.topic = produced.topic
   AND failed.partition IS NOT DISTINCT FROM produced.partition
WHERE produced.direction = 'produced' AND NOT EXISTS (
    SELECT 1 FROM messages AS delivered
    WHERE delivered.direction IN ('fetched', 'pushed') AND delivered.topic = produced.topic
      AND delivered.value IS NOT DISTINCT FROM produced.value AND delivered.key IS NOT DISTINCT FROM produced.key
)
GROUP BY produced.topic, produced.partition
ORDER BY messages DESC, produced.topic, produced.partition
