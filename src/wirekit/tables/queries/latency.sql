-- Latency of each API in microseconds.
-- A fetch that waits for messages, and a join that waits for other members, are slow by design.
SELECT protocol, api, version, count(*) AS answered,
       percentile_disc(0.5) WITHIN GROUP (ORDER BY latency_us) AS p50_us,
       percentile_disc(0.99) WITHIN GROUP (ORDER BY latency_us) AS p99_us,
       max(latency_us) AS max_us
FROM calls
WHERE outcome = 'answered'
GROUP BY protocol, api, version
ORDER BY p99_us DESC, protocol, api, version
