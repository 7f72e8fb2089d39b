SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- PreviewDLQ: what a filter of the DLQ means at this moment: how many jobs, and the newest of them. Never reads payloads.
-- Called by: operators.
-- Parameters: @Queue, @Type (empty: any), @Reason, @Status (-1: any), @Tag text contained in the tags (empty: any), @FromMs,
--   @UntilMs (stopped at or after, and before, that many milliseconds since 1970; -1: any), @Search text contained in id, type,
--   tags, error type or error message (empty: any; looks at the newest 10,000 that fit the rest), @Limit ids.
-- Results: Matched (counted up to 10,000), More (1: there are older ones beyond those looked at); then JobId, newest first.
-- Table order: JobsDLQ.
CREATE OR ALTER PROCEDURE chokaq.PreviewDLQ
    @Queue   varchar(255),
    @Type    varchar(255),
    @Reason  int,
    @Status  int,
    @Tag     nvarchar(1000),
    @FromMs  bigint,
    @UntilMs bigint,
    @Search  nvarchar(1000),
    @Limit   int
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Epoch datetime2(3) = '1970-01-01', @From datetime2(3), @Until datetime2(3), @Matched int, @More bit = 0;
    DECLARE @Hit TABLE (Place int NOT NULL PRIMARY KEY, JobId char(26) COLLATE Latin1_General_BIN2 NOT NULL);
    IF @FromMs >= 0
        SET @From = DATEADD(MILLISECOND, CAST(@FromMs % 1000 AS int),
                    DATEADD(SECOND, CAST(@FromMs / 1000 % 86400 AS int),
                    DATEADD(DAY, CAST(@FromMs / 86400000 AS int), @Epoch)));
    IF @UntilMs >= 0
        SET @Until = DATEADD(MILLISECOND, CAST(@UntilMs % 1000 AS int),
                     DATEADD(SECOND, CAST(@UntilMs / 1000 % 86400 AS int),
                     DATEADD(DAY, CAST(@UntilMs / 86400000 AS int), @Epoch)));
    SET @Search = LOWER(@Search);
    INSERT @Hit (Place, JobId)
    SELECT w.Place, w.Id
    FROM (SELECT TOP (10001) ROW_NUMBER() OVER (ORDER BY d.FailedAtUtc DESC, d.Id DESC) AS Place, d.Id, d.Type, d.Tags,
                 d.ErrorType, d.ErrorMessage
          FROM chokaq.JobsDLQ d
          WHERE (@Queue = '' OR d.Queue = @Queue) AND (@Type = '' OR d.Type = @Type)
            AND (@Tag = N'' OR CHARINDEX(@Tag, d.Tags) > 0)
            AND (@Status = -1 OR d.Status = @Status) AND (@Reason = -1 OR d.FailureReason = @Reason)
            AND (@From IS NULL OR d.FailedAtUtc >= @From) AND (@Until IS NULL OR d.FailedAtUtc < @Until)
          ORDER BY d.FailedAtUtc DESC, d.Id DESC) w
    WHERE w.Place > 10000 OR @Search = N''
       OR CHARINDEX(@Search, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
       OR CHARINDEX(@Search, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
       OR CHARINDEX(@Search, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0
       OR CHARINDEX(@Search, LOWER(w.ErrorType) COLLATE Latin1_General_BIN2) > 0
       OR CHARINDEX(@Search, LOWER(w.ErrorMessage) COLLATE Latin1_General_BIN2) > 0
    OPTION (RECOMPILE);
    DELETE FROM @Hit WHERE Place > 10000;
    IF @@ROWCOUNT > 0 SET @More = 1;
    SELECT @Matched = COUNT(*) FROM @Hit;
    SELECT @Matched AS Matched, @More AS More;
    SELECT TOP (@Limit) h.JobId AS JobId FROM @Hit h ORDER BY h.Place;
END;
GO
