SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- BrowseJobs: one page of one pillar, in the order of ids or of ends. Never reads payloads or headers.
-- Called by: The Deck.
-- Parameters: @Pillar hot, archive or dlq; @ByEnd 1: in the order of (end, id), Archive and DLQ only; @Descending; @Queue, @Type,
--   @ErrorType (empty: any), @Status, @Reason (-1: any), @Tag text contained in the tags, @Text text contained in id, type, tags,
--   error type or error message (empty: any), @FromMs, @UntilMs (ended at or after, and before, that many milliseconds since 1970;
--   -1: any); @AfterMs, @AfterId the last row of the page before (empty id: the first page); @Limit rows; @Look rows looked at, at
--   most (of each queue in turn when @ByEnd names no queue): a filter that nothing fits costs no more than that.
-- Results: 1. EndMs, EndId: how far it looked when it did not look at everything (empty id: it did); 2. the columns of ListJobs.
-- Table order: the one pillar asked for.
CREATE OR ALTER PROCEDURE chokaq.BrowseJobs
    @Pillar     varchar(10),
    @ByEnd      bit,
    @Descending bit,
    @Queue      varchar(255),
    @Status     int,
    @Type       varchar(255),
    @Reason     int,
    @ErrorType  nvarchar(255),
    @Tag        nvarchar(1000),
    @Text       nvarchar(1000),
    @FromMs     bigint,
    @UntilMs    bigint,
    @AfterMs    bigint,
    @AfterId    varchar(26),
    @Limit      int,
    @Look       int
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    DECLARE @Epoch datetime2(3) = '1970-01-01', @From datetime2(3), @Until datetime2(3), @AfterUtc datetime2(3);
    DECLARE @Source varchar(255), @Next varchar(255), @EndUtc datetime2(3), @EndId varchar(26) = '';
    -- Place: the how-manieth row looked at. The last one allowed stands here whether it fits or not: it is the end of the look.
    DECLARE @Keys TABLE (
        Id char(26) COLLATE Latin1_General_BIN2 NOT NULL PRIMARY KEY, Ended datetime2(3) NOT NULL, Place bigint NOT NULL);
    IF @FromMs >= 0
        SET @From = DATEADD(MILLISECOND, CAST(@FromMs % 1000 AS int), DATEADD(SECOND, CAST(@FromMs / 1000 % 86400 AS int),
            DATEADD(DAY, CAST(@FromMs / 86400000 AS int), @Epoch)));
    IF @UntilMs >= 0
        SET @Until = DATEADD(MILLISECOND, CAST(@UntilMs % 1000 AS int), DATEADD(SECOND, CAST(@UntilMs / 1000 % 86400 AS int),
            DATEADD(DAY, CAST(@UntilMs / 86400000 AS int), @Epoch)));
    IF @AfterId = ''
        SELECT @AfterUtc = CASE WHEN @Descending = 1 THEN '9999-12-31' ELSE '0001-01-01' END,
            @AfterId = CASE WHEN @Descending = 1 THEN '~' ELSE '' END;
    ELSE
        SET @AfterUtc = DATEADD(MILLISECOND, CAST(@AfterMs % 1000 AS int), DATEADD(SECOND, CAST(@AfterMs / 1000 % 86400 AS int),
            DATEADD(DAY, CAST(@AfterMs / 86400000 AS int), @Epoch)));
    SET @Text = LOWER(@Text);
    IF @Pillar = 'hot' AND @Status IN (1, 2)
    BEGIN
        IF @Descending = 1
            INSERT @Keys (Id, Ended, Place)
            SELECT TOP (@Limit) w.Id, @Epoch, w.Place
            FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.Id DESC) AS Place,
                h.Id AS Id, @Epoch AS Ended, h.Queue AS Queue, h.Type AS Type, h.Status AS Status, h.Tags AS Tags
                FROM chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK, INDEX (IX_JobsHot_Lease))
                WHERE h.Id < @AfterId AND h.Status IN (1, 2)
                ORDER BY h.Id DESC) w
            WHERE w.Place = @Look OR ((@Queue = '' OR w.Queue = @Queue)
                AND (@Status = -1 OR w.Status = @Status)
                AND (@Type = '' OR w.Type = @Type)
                AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                AND (@Text = N''
                OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0))
            ORDER BY w.Id DESC
            OPTION (RECOMPILE);
        ELSE
            INSERT @Keys (Id, Ended, Place)
            SELECT TOP (@Limit) w.Id, @Epoch, w.Place
            FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.Id) AS Place,
                h.Id AS Id, @Epoch AS Ended, h.Queue AS Queue, h.Type AS Type, h.Status AS Status, h.Tags AS Tags
                FROM chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK, INDEX (IX_JobsHot_Lease))
                WHERE h.Id > @AfterId AND h.Status IN (1, 2)
                ORDER BY h.Id) w
            WHERE w.Place = @Look OR ((@Queue = '' OR w.Queue = @Queue)
                AND (@Status = -1 OR w.Status = @Status)
                AND (@Type = '' OR w.Type = @Type)
                AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                AND (@Text = N''
                OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0))
            ORDER BY w.Id
            OPTION (RECOMPILE);
    END;
    ELSE IF @Pillar = 'hot'
    BEGIN
        IF @Descending = 1
            INSERT @Keys (Id, Ended, Place)
            SELECT TOP (@Limit) w.Id, @Epoch, w.Place
            FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.Id DESC) AS Place,
                h.Id AS Id, @Epoch AS Ended, h.Queue AS Queue, h.Type AS Type, h.Status AS Status, h.Tags AS Tags
                FROM chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK)
                WHERE h.Id < @AfterId
                ORDER BY h.Id DESC) w
            WHERE w.Place = @Look OR ((@Queue = '' OR w.Queue = @Queue)
                AND (@Status = -1 OR w.Status = @Status)
                AND (@Type = '' OR w.Type = @Type)
                AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                AND (@Text = N''
                OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0))
            ORDER BY w.Id DESC
            OPTION (RECOMPILE);
        ELSE
            INSERT @Keys (Id, Ended, Place)
            SELECT TOP (@Limit) w.Id, @Epoch, w.Place
            FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.Id) AS Place,
                h.Id AS Id, @Epoch AS Ended, h.Queue AS Queue, h.Type AS Type, h.Status AS Status, h.Tags AS Tags
                FROM chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK)
                WHERE h.Id > @AfterId
                ORDER BY h.Id) w
            WHERE w.Place = @Look OR ((@Queue = '' OR w.Queue = @Queue)
                AND (@Status = -1 OR w.Status = @Status)
                AND (@Type = '' OR w.Type = @Type)
                AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                AND (@Text = N''
                OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0))
            ORDER BY w.Id
            OPTION (RECOMPILE);
    END;
    ELSE IF @Pillar = 'archive' AND @ByEnd = 0
    BEGIN
        IF @Descending = 1
            INSERT @Keys (Id, Ended, Place)
            SELECT TOP (@Limit) w.Id, @Epoch, w.Place
            FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.Id DESC) AS Place,
                h.Id AS Id, h.FinishedAtUtc AS Ended, h.Queue AS Queue, h.Type AS Type, 3 AS Status, h.Tags AS Tags
                FROM chokaq.JobsArchive h
                WHERE h.Id < @AfterId
                ORDER BY h.Id DESC) w
            WHERE w.Place = @Look OR ((@Queue = '' OR w.Queue = @Queue)
                AND (@Status = -1 OR w.Status = @Status)
                AND (@Type = '' OR w.Type = @Type)
                AND (@From IS NULL OR w.Ended >= @From) AND (@Until IS NULL OR w.Ended < @Until)
                AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                AND (@Text = N''
                OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0))
            ORDER BY w.Id DESC
            OPTION (RECOMPILE);
        ELSE
            INSERT @Keys (Id, Ended, Place)
            SELECT TOP (@Limit) w.Id, @Epoch, w.Place
            FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.Id) AS Place,
                h.Id AS Id, h.FinishedAtUtc AS Ended, h.Queue AS Queue, h.Type AS Type, 3 AS Status, h.Tags AS Tags
                FROM chokaq.JobsArchive h
                WHERE h.Id > @AfterId
                ORDER BY h.Id) w
            WHERE w.Place = @Look OR ((@Queue = '' OR w.Queue = @Queue)
                AND (@Status = -1 OR w.Status = @Status)
                AND (@Type = '' OR w.Type = @Type)
                AND (@From IS NULL OR w.Ended >= @From) AND (@Until IS NULL OR w.Ended < @Until)
                AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                AND (@Text = N''
                OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0))
            ORDER BY w.Id
            OPTION (RECOMPILE);
    END;
    ELSE IF @Pillar = 'archive'
    BEGIN
        SET @Source = @Queue;
        IF @Queue = ''
            SELECT TOP (1) @Source = h.Queue FROM chokaq.JobsArchive h WITH (INDEX (IX_JobsArchive_Finished)) ORDER BY h.Queue;
        WHILE @Source IS NOT NULL AND @Source <> ''
        BEGIN
            IF @Descending = 1
                INSERT @Keys (Id, Ended, Place)
                SELECT TOP (@Limit) w.Id, w.Ended, w.Place
                FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.FinishedAtUtc DESC, h.Id DESC) AS Place,
                h.Id AS Id, h.FinishedAtUtc AS Ended, h.Queue AS Queue, h.Type AS Type, 3 AS Status, h.Tags AS Tags
                    FROM chokaq.JobsArchive h WITH (INDEX (IX_JobsArchive_Finished))
                    WHERE h.Queue = @Source AND h.FinishedAtUtc <= @AfterUtc
                AND (h.FinishedAtUtc < @AfterUtc OR h.Id < @AfterId)
                    AND (@From IS NULL OR h.FinishedAtUtc >= @From) AND (@Until IS NULL OR h.FinishedAtUtc < @Until)
                    ORDER BY h.FinishedAtUtc DESC, h.Id DESC) w
                WHERE w.Place = @Look OR ((@Status = -1 OR w.Status = @Status)
                    AND (@Type = '' OR w.Type = @Type)
                    AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                    AND (@Text = N''
                    OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0))
                ORDER BY w.Ended DESC, w.Id DESC
                OPTION (RECOMPILE);
            ELSE
                INSERT @Keys (Id, Ended, Place)
                SELECT TOP (@Limit) w.Id, w.Ended, w.Place
                FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.FinishedAtUtc, h.Id) AS Place,
                h.Id AS Id, h.FinishedAtUtc AS Ended, h.Queue AS Queue, h.Type AS Type, 3 AS Status, h.Tags AS Tags
                    FROM chokaq.JobsArchive h WITH (INDEX (IX_JobsArchive_Finished))
                    WHERE h.Queue = @Source AND h.FinishedAtUtc >= @AfterUtc
                AND (h.FinishedAtUtc > @AfterUtc OR h.Id > @AfterId)
                    AND (@From IS NULL OR h.FinishedAtUtc >= @From) AND (@Until IS NULL OR h.FinishedAtUtc < @Until)
                    ORDER BY h.FinishedAtUtc, h.Id) w
                WHERE w.Place = @Look OR ((@Status = -1 OR w.Status = @Status)
                    AND (@Type = '' OR w.Type = @Type)
                    AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                    AND (@Text = N''
                    OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0))
                ORDER BY w.Ended, w.Id
                OPTION (RECOMPILE);
            SET @Next = NULL;
            IF @Queue = ''
                SELECT TOP (1) @Next = h.Queue FROM chokaq.JobsArchive h WITH (INDEX (IX_JobsArchive_Finished))
                WHERE h.Queue > @Source ORDER BY h.Queue;
            SET @Source = @Next;
        END;
    END;
    ELSE IF @ByEnd = 0
    BEGIN
        IF @Descending = 1
            INSERT @Keys (Id, Ended, Place)
            SELECT TOP (@Limit) w.Id, @Epoch, w.Place
            FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.Id DESC) AS Place,
                h.Id AS Id, h.FailedAtUtc AS Ended, h.Queue AS Queue, h.Type AS Type, h.Status AS Status, h.Tags AS Tags,
                h.FailureReason AS FailureReason,
                h.ErrorType AS ErrorType, h.ErrorMessage AS ErrorMessage
                FROM chokaq.JobsDLQ h
                WHERE h.Id < @AfterId
                ORDER BY h.Id DESC) w
            WHERE w.Place = @Look OR ((@Queue = '' OR w.Queue = @Queue)
                AND (@Status = -1 OR w.Status = @Status)
                AND (@Type = '' OR w.Type = @Type)
                AND (@From IS NULL OR w.Ended >= @From) AND (@Until IS NULL OR w.Ended < @Until)
                AND (@Reason = -1 OR w.FailureReason = @Reason)
            AND (@ErrorType = N'' OR w.ErrorType COLLATE Latin1_General_BIN2 = @ErrorType)
                AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                AND (@Text = N''
                OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.ErrorType) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.ErrorMessage) COLLATE Latin1_General_BIN2) > 0))
            ORDER BY w.Id DESC
            OPTION (RECOMPILE);
        ELSE
            INSERT @Keys (Id, Ended, Place)
            SELECT TOP (@Limit) w.Id, @Epoch, w.Place
            FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.Id) AS Place,
                h.Id AS Id, h.FailedAtUtc AS Ended, h.Queue AS Queue, h.Type AS Type, h.Status AS Status, h.Tags AS Tags,
                h.FailureReason AS FailureReason,
                h.ErrorType AS ErrorType, h.ErrorMessage AS ErrorMessage
                FROM chokaq.JobsDLQ h
                WHERE h.Id > @AfterId
                ORDER BY h.Id) w
            WHERE w.Place = @Look OR ((@Queue = '' OR w.Queue = @Queue)
                AND (@Status = -1 OR w.Status = @Status)
                AND (@Type = '' OR w.Type = @Type)
                AND (@From IS NULL OR w.Ended >= @From) AND (@Until IS NULL OR w.Ended < @Until)
                AND (@Reason = -1 OR w.FailureReason = @Reason)
            AND (@ErrorType = N'' OR w.ErrorType COLLATE Latin1_General_BIN2 = @ErrorType)
                AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                AND (@Text = N''
                OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.ErrorType) COLLATE Latin1_General_BIN2) > 0
                OR CHARINDEX(@Text, LOWER(w.ErrorMessage) COLLATE Latin1_General_BIN2) > 0))
            ORDER BY w.Id
            OPTION (RECOMPILE);
    END;
    ELSE
    BEGIN
        SET @Source = @Queue;
        IF @Queue = ''
            SELECT TOP (1) @Source = h.Queue FROM chokaq.JobsDLQ h WITH (INDEX (IX_JobsDLQ_Failed)) ORDER BY h.Queue;
        WHILE @Source IS NOT NULL AND @Source <> ''
        BEGIN
            IF @Descending = 1
                INSERT @Keys (Id, Ended, Place)
                SELECT TOP (@Limit) w.Id, w.Ended, w.Place
                FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.FailedAtUtc DESC, h.Id DESC) AS Place,
                h.Id AS Id, h.FailedAtUtc AS Ended, h.Queue AS Queue, h.Type AS Type, h.Status AS Status, h.Tags AS Tags,
                h.FailureReason AS FailureReason,
                    h.ErrorType AS ErrorType, h.ErrorMessage AS ErrorMessage
                    FROM chokaq.JobsDLQ h WITH (INDEX (IX_JobsDLQ_Failed))
                    WHERE h.Queue = @Source AND h.FailedAtUtc <= @AfterUtc
                AND (h.FailedAtUtc < @AfterUtc OR h.Id < @AfterId)
                    AND (@From IS NULL OR h.FailedAtUtc >= @From) AND (@Until IS NULL OR h.FailedAtUtc < @Until)
                    ORDER BY h.FailedAtUtc DESC, h.Id DESC) w
                WHERE w.Place = @Look OR ((@Status = -1 OR w.Status = @Status)
                    AND (@Type = '' OR w.Type = @Type)
                    AND (@Reason = -1 OR w.FailureReason = @Reason)
            AND (@ErrorType = N'' OR w.ErrorType COLLATE Latin1_General_BIN2 = @ErrorType)
                    AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                    AND (@Text = N''
                    OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.ErrorType) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.ErrorMessage) COLLATE Latin1_General_BIN2) > 0))
                ORDER BY w.Ended DESC, w.Id DESC
                OPTION (RECOMPILE);
            ELSE
                INSERT @Keys (Id, Ended, Place)
                SELECT TOP (@Limit) w.Id, w.Ended, w.Place
                FROM (SELECT TOP (@Look) ROW_NUMBER() OVER (ORDER BY h.FailedAtUtc, h.Id) AS Place,
                h.Id AS Id, h.FailedAtUtc AS Ended, h.Queue AS Queue, h.Type AS Type, h.Status AS Status, h.Tags AS Tags,
                h.FailureReason AS FailureReason,
                    h.ErrorType AS ErrorType, h.ErrorMessage AS ErrorMessage
                    FROM chokaq.JobsDLQ h WITH (INDEX (IX_JobsDLQ_Failed))
                    WHERE h.Queue = @Source AND h.FailedAtUtc >= @AfterUtc
                AND (h.FailedAtUtc > @AfterUtc OR h.Id > @AfterId)
                    AND (@From IS NULL OR h.FailedAtUtc >= @From) AND (@Until IS NULL OR h.FailedAtUtc < @Until)
                    ORDER BY h.FailedAtUtc, h.Id) w
                WHERE w.Place = @Look OR ((@Status = -1 OR w.Status = @Status)
                    AND (@Type = '' OR w.Type = @Type)
                    AND (@Reason = -1 OR w.FailureReason = @Reason)
            AND (@ErrorType = N'' OR w.ErrorType COLLATE Latin1_General_BIN2 = @ErrorType)
                    AND (@Tag = N'' OR CHARINDEX(@Tag, w.Tags) > 0)
                    AND (@Text = N''
                    OR CHARINDEX(@Text, LOWER(w.Id) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.Type) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.Tags) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.ErrorType) COLLATE Latin1_General_BIN2) > 0
                    OR CHARINDEX(@Text, LOWER(w.ErrorMessage) COLLATE Latin1_General_BIN2) > 0))
                ORDER BY w.Ended, w.Id
                OPTION (RECOMPILE);
            SET @Next = NULL;
            IF @Queue = ''
                SELECT TOP (1) @Next = h.Queue FROM chokaq.JobsDLQ h WITH (INDEX (IX_JobsDLQ_Failed))
                WHERE h.Queue > @Source ORDER BY h.Queue;
            SET @Source = @Next;
        END;
    END;

    -- Of several queues the one whose look ended first says how far the page is whole.
    IF @Descending = 1
        SELECT TOP (1) @EndUtc = k.Ended, @EndId = k.Id FROM @Keys k WHERE k.Place = @Look ORDER BY k.Ended DESC, k.Id DESC;
    ELSE
        SELECT TOP (1) @EndUtc = k.Ended, @EndId = k.Id FROM @Keys k WHERE k.Place = @Look ORDER BY k.Ended, k.Id;
    IF @EndId <> '' AND @Descending = 1
        DELETE FROM @Keys WHERE Ended < @EndUtc OR (Ended = @EndUtc AND Id < @EndId);
    IF @EndId <> '' AND @Descending = 0
        DELETE FROM @Keys WHERE Ended > @EndUtc OR (Ended = @EndUtc AND Id > @EndId);
    SELECT COALESCE(DATEDIFF_BIG(MILLISECOND, @Epoch, @EndUtc), 0) AS EndMs, @EndId AS EndId;

    IF @Pillar = 'hot'
        SELECT TOP (@Limit) 'hot' AS Pillar, h.Id AS Id, h.Status AS Status, h.Queue AS Queue, h.Type AS Type,
            h.Priority AS Priority, h.AttemptCount AS AttemptCount,
               h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber, h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc,
               h.StartedAtUtc AS StartedAtUtc, CAST(NULL AS datetime2(3)) AS FinishedAtUtc, CAST(NULL AS bigint) AS DurationMs,
                   h.WorkerId AS WorkerId, h.HeartbeatUtc AS HeartbeatUtc,
               h.Progress AS Progress, h.Tags AS Tags, h.CreatedBy AS CreatedBy, h.OwnerLogin AS OwnerLogin,
               h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope, h.CancelRequestedAtUtc AS CancelRequestedAtUtc,
                   CAST(NULL AS int) AS FailureReason,
               CAST(NULL AS nvarchar(255)) AS ErrorType, CAST(NULL AS nvarchar(4000)) AS ErrorMessage
        FROM @Keys k JOIN chokaq.JobsHot h WITH (READPAST, READCOMMITTEDLOCK, FORCESEEK) ON h.Id = k.Id
        WHERE (@Queue = '' OR h.Queue = @Queue)
          AND (@Status = -1 OR h.Status = @Status)
          AND (@Type = '' OR h.Type = @Type)
          AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
          AND (@Text = N''
              OR CHARINDEX(@Text, LOWER(h.Id) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Text, LOWER(h.Type) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Text, LOWER(h.Tags) COLLATE Latin1_General_BIN2) > 0)
        ORDER BY CASE WHEN @Descending = 1 THEN k.Ended END DESC, CASE WHEN @Descending = 0 THEN k.Ended END,
            CASE WHEN @Descending = 1 THEN k.Id END DESC, CASE WHEN @Descending = 0 THEN k.Id END
        OPTION (RECOMPILE, LOOP JOIN);
    ELSE IF @Pillar = 'archive'
        SELECT TOP (@Limit) 'archive' AS Pillar, h.Id AS Id, CAST(3 AS tinyint) AS Status, h.Queue AS Queue, h.Type AS Type,
            h.Priority AS Priority, h.AttemptCount AS AttemptCount,
               h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber, h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc,
               h.StartedAtUtc AS StartedAtUtc, h.FinishedAtUtc AS FinishedAtUtc, h.DurationMs AS DurationMs,
                   h.WorkerId AS WorkerId, CAST(NULL AS datetime2(3)) AS HeartbeatUtc,
               h.Progress AS Progress, h.Tags AS Tags, h.CreatedBy AS CreatedBy, h.OwnerLogin AS OwnerLogin,
               h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope, CAST(NULL AS datetime2(3)) AS CancelRequestedAtUtc,
                   CAST(NULL AS int) AS FailureReason,
               CAST(NULL AS nvarchar(255)) AS ErrorType, CAST(NULL AS nvarchar(4000)) AS ErrorMessage
        FROM @Keys k JOIN chokaq.JobsArchive h WITH (FORCESEEK) ON h.Id = k.Id
        WHERE (@Queue = '' OR h.Queue = @Queue)
          AND (@Status = -1 OR @Status = 3)
          AND (@Type = '' OR h.Type = @Type)
          AND (@From IS NULL OR h.FinishedAtUtc >= @From) AND (@Until IS NULL OR h.FinishedAtUtc < @Until)
          AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
          AND (@Text = N''
              OR CHARINDEX(@Text, LOWER(h.Id) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Text, LOWER(h.Type) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Text, LOWER(h.Tags) COLLATE Latin1_General_BIN2) > 0)
        ORDER BY CASE WHEN @Descending = 1 THEN k.Ended END DESC, CASE WHEN @Descending = 0 THEN k.Ended END,
            CASE WHEN @Descending = 1 THEN k.Id END DESC, CASE WHEN @Descending = 0 THEN k.Id END
        OPTION (RECOMPILE, LOOP JOIN);
    ELSE
        SELECT TOP (@Limit) 'dlq' AS Pillar, h.Id AS Id, h.Status AS Status, h.Queue AS Queue, h.Type AS Type,
            h.Priority AS Priority, h.AttemptCount AS AttemptCount,
               h.CrashCount AS CrashCount, h.LeaseNumber AS LeaseNumber, h.CreatedAtUtc AS CreatedAtUtc, h.DueAtUtc AS DueAtUtc,
               h.StartedAtUtc AS StartedAtUtc, h.FailedAtUtc AS FinishedAtUtc, CAST(NULL AS bigint) AS DurationMs,
                   h.WorkerId AS WorkerId, CAST(NULL AS datetime2(3)) AS HeartbeatUtc,
               h.Progress AS Progress, h.Tags AS Tags, h.CreatedBy AS CreatedBy, h.OwnerLogin AS OwnerLogin,
               h.IdempotencyKey AS IdempotencyKey, h.KeyScope AS KeyScope, h.CancelRequestedAtUtc AS CancelRequestedAtUtc,
                   h.FailureReason AS FailureReason,
               h.ErrorType AS ErrorType, h.ErrorMessage AS ErrorMessage
        FROM @Keys k JOIN chokaq.JobsDLQ h WITH (FORCESEEK) ON h.Id = k.Id
        WHERE (@Queue = '' OR h.Queue = @Queue)
          AND (@Status = -1 OR h.Status = @Status)
          AND (@Type = '' OR h.Type = @Type)
          AND (@From IS NULL OR h.FailedAtUtc >= @From) AND (@Until IS NULL OR h.FailedAtUtc < @Until)
          AND (@Reason = -1 OR h.FailureReason = @Reason)
          AND (@ErrorType = N'' OR h.ErrorType COLLATE Latin1_General_BIN2 = @ErrorType)
          AND (@Tag = N'' OR CHARINDEX(@Tag, h.Tags) > 0)
          AND (@Text = N''
              OR CHARINDEX(@Text, LOWER(h.Id) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Text, LOWER(h.Type) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Text, LOWER(h.Tags) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Text, LOWER(h.ErrorType) COLLATE Latin1_General_BIN2) > 0
              OR CHARINDEX(@Text, LOWER(h.ErrorMessage) COLLATE Latin1_General_BIN2) > 0)
        ORDER BY CASE WHEN @Descending = 1 THEN k.Ended END DESC, CASE WHEN @Descending = 0 THEN k.Ended END,
            CASE WHEN @Descending = 1 THEN k.Id END DESC, CASE WHEN @Descending = 0 THEN k.Id END
        OPTION (RECOMPILE, LOOP JOIN);
END;
GO
