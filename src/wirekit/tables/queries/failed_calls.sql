-- Failed calls without a topic, and calls without a response.
SELECT protocol, api, client, outcome, error, error_text, count(*) AS calls
FROM calls
WHERE (error IS NOT NULL AND topics IS NULL) OR outcome = 'unanswered'
GROUP BY protocol, api, client, outcome, error, error_text
ORDER BY calls DESC, protocol, api, client, error
