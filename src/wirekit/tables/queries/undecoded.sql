-- Undecoded bytes, and bytes missing from the captures.
-- Connections that use TLS appear only here. The side is the sender: `client` or `server`.
WITH lost AS (
    SELECT 'not decoded' AS kind, protocol, side, regexp_replace(reason, ' id -?[0-9]+$', ' id') AS reason,
           connection_id, length
    FROM quarantine
    UNION ALL
    SELECT 'not captured' AS kind, protocol, side, reason, connection_id, length FROM gaps
)
SELECT kind, protocol, side, reason, count(DISTINCT connection_id) AS connections, count(*) AS pieces,
       sum(length) AS bytes
FROM lost
GROUP BY kind, protocol, side, reason
ORDER BY bytes DESC, kind, protocol, side, reason
