-- Groups with members, generation and last event.
-- The last event is `stored` if only `__consumer_offsets` has the group.
SELECT protocol, group_id, count(DISTINCT CASE WHEN error IS NULL THEN member_id END) AS members,
       max(CASE WHEN error IS NULL THEN generation END) AS generation,
       date_trunc('second', min(time)) AS first_seen, date_trunc('second', max(time)) AS last_seen,
       coalesce(max_by(event, CASE WHEN event <> 'stored' THEN time END), 'stored') AS last_event,
       count(error) AS errors
FROM group_events
WHERE group_id IS NOT NULL
GROUP BY protocol, group_id
ORDER BY protocol, group_id
