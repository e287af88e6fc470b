-- Failed calls of groups, such as refused commits.
-- A Kafka broker answers heartbeats with `REBALANCE_IN_PROGRESS` while a group rebalances, and with `UNKNOWN_MEMBER_ID`
-- after it has removed a silent member.
SELECT protocol, group_id, api, error, client, count(*) AS calls, date_trunc('second', min(request_time)) AS first_seen
FROM calls
WHERE group_id IS NOT NULL AND error IS NOT NULL
GROUP BY protocol, group_id, api, error, client
ORDER BY calls DESC, protocol, group_id, api, error, client
