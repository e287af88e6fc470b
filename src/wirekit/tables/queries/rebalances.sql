-- Rebalances of Kafka groups, one row per generation.
-- A rebalance lasts from the first join request to the last join response. The members of a group send these calls
-- to one broker, the coordinator of the group; the capture must contain its traffic.
SELECT group_events.group_id, group_events.generation, count(DISTINCT group_events.member_id) AS members,
       min(calls.request_time) AS began, max(calls.response_time) AS ended
FROM group_events JOIN calls ON calls.call_id = group_events.call_id
WHERE group_events.event = 'join' AND calls.outcome = 'answered' AND calls.error IS NULL
GROUP BY group_events.group_id, group_events.generation
ORDER BY group_events.group_id, group_events.generation
