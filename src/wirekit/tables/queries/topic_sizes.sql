-- Messages and bytes of each topic per day, network and disk.
-- Bytes are those of the messages after decompression. The day of a stored message is that of its own timestamp, or
-- null if it has none.
SELECT topic, date, direction, count(*) AS messages, sum(wire_bytes) AS bytes
FROM messages
GROUP BY topic, date, direction
ORDER BY topic, date, direction
