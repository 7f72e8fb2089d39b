-- ListFamilies: the largest families of errors among the newest 10,000 jobs of the DLQ (by id), Dropped ones left out. Called by The Deck.
-- Result: reason, error type, jobs, latest stop, message of the newest; the largest first.
-- Table order: JobsDLQ.

-- name: list
SELECT f.FailureReason, f.ErrorType, f.Jobs, f.Latest, COALESCE(SUBSTR(m.ErrorMessage, 1, 200), '')
FROM (
    SELECT FailureReason, ErrorType, COUNT(*) AS Jobs, MAX(FailedAtUtc) AS Latest, MAX(Id) AS Newest
    FROM (SELECT Id, FailureReason, ErrorType, FailedAtUtc FROM JobsDLQ
          WHERE (:queue IS NULL OR Queue = :queue) AND Status <> 7 ORDER BY Id DESC LIMIT 10000)
    GROUP BY FailureReason, ErrorType ORDER BY Jobs DESC, Newest DESC LIMIT :limit
) AS f CROSS JOIN JobsDLQ AS m ON m.Id = f.Newest
ORDER BY f.Jobs DESC, f.Newest DESC;
