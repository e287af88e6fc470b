-- Messages and bytes of each topic per minute.
-- Bytes are those of the messages after decompression.
SELECT topic, date_trunc('minute', time) AS minute, direction, count(*) AS messages, sum(wire_bytes) AS bytes
FROM messages
WHERE direction <> 'stored'
GROUP BY topic, date_trunc('minute', time), direction
ORDER BY minute, topic, direction
