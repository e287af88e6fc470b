-- Requests, errors and bytes of each client.
-- Events, such as messages that the server pushes, and responses whose request was not captured are not counted.
SELECT protocol, client, client_address, count(*) AS requests, count(error) AS errors, sum(request_bytes) AS bytes
FROM calls
WHERE outcome NOT IN ('unasked', 'event')
GROUP BY protocol, client, client_address
ORDER BY requests DESC, client, client_address
