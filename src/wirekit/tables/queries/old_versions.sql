-- Clients that use an old version of an API.
-- An old version is lower than the highest version of the API that was used without an error.
WITH requests AS (
    SELECT protocol, api, version, client, client_address,
           max(CASE WHEN error IS NULL THEN version END) OVER (PARTITION BY protocol, api) AS newest
    FROM calls
)
SELECT protocol, api, version, newest, client, client_address, count(*) AS requests
FROM requests
WHERE version < newest
GROUP BY protocol, api, version, newest, client, client_address
ORDER BY requests DESC, api, version, client, client_address
