-- Members of groups with assigned partitions and last event.
-- A successful heartbeat is not an event. A Kafka member whose generation is older than the last generation of its
-- group is gone: it left the group (`leave`), or the broker removed it because it sent no heartbeats.
SELECT group_events.group_id, group_events.client, max(calls.client_address) AS client_address,
       max(group_events.generation) AS generation,
       cardinality(max_by(assignment, CASE WHEN assignment IS NOT NULL THEN group_events.time END)) AS partitions,
       date_trunc('second', max(group_events.time)) AS last_seen,
       max_by(group_events.event, group_events.time) AS last_event, group_events.member_id
FROM group_events JOIN calls ON calls.call_id = group_events.call_id
WHERE group_events.group_id IS NOT NULL AND group_events.member_id IS NOT NULL AND group_events.event <> 'stored'
GROUP BY group_events.group_id, group_events.member_id, group_events.client
HAVING count(*) > count(group_events.error)
ORDER BY group_events.group_id, last_seen, group_events.member_id
