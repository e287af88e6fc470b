-- Connections with bytes that were captured twice.
-- Usually they were retransmitted. `undecoded` has the bytes that were not captured at all.
SELECT protocol, client, concat(client_address, ':', client_port, '>', server_address, ':', server_port) AS connection,
       opened, client_captured AS client_bytes, client_duplicate, server_captured AS server_bytes, server_duplicate
FROM connections
WHERE client_duplicate + server_duplicate > 0
ORDER BY client_duplicate + server_duplicate DESC, opened, connection, connection_id
