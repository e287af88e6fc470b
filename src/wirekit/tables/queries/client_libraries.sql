-- Client libraries and server software with versions.
-- Kafka clients name theirs in ApiVersions requests of version 3 and later, which they send to old brokers, too.
SELECT protocol, client_software, client_version, server_software, count(*) AS connections
FROM connections
WHERE client_software IS NOT NULL OR server_software IS NOT NULL
GROUP BY protocol, client_software, client_version, server_software
ORDER BY connections DESC, protocol, client_software, client_version
