-- Messages with a wrong checksum.
-- In a segment, `position` is the byte where the message, or its compressed set, begins. In a capture, `wirekit frames
-- --errors` lists the frames with such messages.
SELECT topic, partition, direction, time, log_offset, message_id, file, position
FROM messages
WHERE crc_status = 'bad'
ORDER BY file, position, topic, log_offset, message_id
