-- Client libraries and server software with versions.
-- Clients of Kafka 0.8 to 0.10 do not transmit them.
SELECT protocol, client_software, client_version, server_software, count(*) AS connections
FROM connections
WHERE client_software IS NOT NULL OR server_software IS NOT NULL
GROUP BY protocol, client_software, client_version, server_software
ORDER BY connections DESC, protocol, client_software, client_version
