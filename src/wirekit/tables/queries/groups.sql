-- Groups with members, generation and last event.
-- A commit is an event; a group of Kafka 0.8 has no others. The last event is `stored` if only `__consumer_offsets` has
-- the group.
WITH events AS (
    SELECT protocol, group_id, member_id, generation, time, event, error FROM group_events
    UNION ALL
    SELECT protocol, group_id, NULL, NULL, time, CASE WHEN source = 'request' THEN 'commit' ELSE 'stored' END, error
    FROM offsets
)
SELECT protocol, group_id, count(DISTINCT CASE WHEN error IS NULL THEN member_id END) AS members,
       max(CASE WHEN error IS NULL THEN generation END) AS generation,
       date_trunc('second', min(time)) AS first_seen, date_trunc('second', max(time)) AS last_seen,
       coalesce(max_by(event, CASE WHEN event <> 'stored' THEN time END), 'stored') AS last_event,
       count(error) AS errors
FROM events
WHERE group_id IS NOT NULL
GROUP BY protocol, group_id
ORDER BY protocol, group_id
