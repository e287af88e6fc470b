-- Errors of each topic.
SELECT calls.protocol, call_topics.topic, calls.api, call_topics.error, count(*) AS errors,
       date_trunc('second', min(calls.request_time)) AS first_seen
FROM call_topics JOIN calls ON calls.call_id = call_topics.call_id
WHERE call_topics.error IS NOT NULL
GROUP BY calls.protocol, call_topics.topic, calls.api, call_topics.error
ORDER BY errors DESC, call_topics.topic, calls.api, call_topics.error
