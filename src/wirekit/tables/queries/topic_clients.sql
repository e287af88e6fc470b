-- Clients of each topic that send or receive messages.
-- `calls` counts produce and fetch requests, with or without messages, and pushed messages. Followers are left out.
SELECT calls.protocol, call_topics.topic, calls.client, calls.client_address, calls.api,
       count(DISTINCT calls.call_id) AS calls, sum(call_topics.messages) AS messages,
       date_trunc('second', max(calls.request_time)) AS last_seen
FROM call_topics JOIN calls ON calls.call_id = call_topics.call_id
WHERE call_topics.topic IS NOT NULL AND call_topics.messages IS NOT NULL AND calls.is_replica IS NOT TRUE
GROUP BY calls.protocol, call_topics.topic, calls.client, calls.client_address, calls.api
ORDER BY calls.protocol, call_topics.topic, calls.api, calls.client, calls.client_address
