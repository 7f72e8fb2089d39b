SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListAudit: operators' actions, newest first: all, or those on one target, of one actor, or of one kind. Each has its index; of several
-- that are given the first one counts.
-- Called by: operators.
-- Parameters: @Target a job id or the name of a queue, worker or job type (empty: any); @Limit rows; @After the smallest id of the page
--   before (0: the first page); @Actor who (empty: anybody), @Action what, as it is stored (empty: anything), both in letters of either
--   case (by the collation of the database).
-- Result: AuditId, AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState.
-- Table order: AuditLog.
CREATE OR ALTER PROCEDURE chokaq.ListAudit
    @Target varchar(255),
    @Limit  int,
    @After  bigint,
    @Actor  nvarchar(100) = N'',
    @Action varchar(50) = ''
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    IF @After = 0 SET @After = 9223372036854775807;

    IF @Target <> ''
        SELECT TOP (@Limit) a.AuditId AS AuditId, a.AtUtc AS AtUtc, a.Actor AS Actor, a.Action AS Action, a.Target AS Target,
               a.Reason AS Reason, a.BeforeState AS BeforeState, a.AfterState AS AfterState
        FROM chokaq.AuditLog a WITH (FORCESEEK, INDEX (IX_AuditLog_Target))
        WHERE a.Target = @Target AND a.AuditId < @After
        ORDER BY a.AuditId DESC;
    ELSE IF @Actor <> N''
        SELECT TOP (@Limit) a.AuditId AS AuditId, a.AtUtc AS AtUtc, a.Actor AS Actor, a.Action AS Action, a.Target AS Target,
               a.Reason AS Reason, a.BeforeState AS BeforeState, a.AfterState AS AfterState
        FROM chokaq.AuditLog a WITH (FORCESEEK, INDEX (IX_AuditLog_Actor))
        WHERE a.Actor = @Actor AND a.AuditId < @After
        ORDER BY a.AuditId DESC;
    ELSE IF @Action <> ''
        SELECT TOP (@Limit) a.AuditId AS AuditId, a.AtUtc AS AtUtc, a.Actor AS Actor, a.Action AS Action, a.Target AS Target,
               a.Reason AS Reason, a.BeforeState AS BeforeState, a.AfterState AS AfterState
        FROM chokaq.AuditLog a WITH (FORCESEEK, INDEX (IX_AuditLog_Action))
        WHERE a.Action = @Action AND a.AuditId < @After
        ORDER BY a.AuditId DESC;
    ELSE
        SELECT TOP (@Limit) a.AuditId AS AuditId, a.AtUtc AS AtUtc, a.Actor AS Actor, a.Action AS Action, a.Target AS Target,
               a.Reason AS Reason, a.BeforeState AS BeforeState, a.AfterState AS AfterState
        FROM chokaq.AuditLog a WITH (FORCESEEK)
        WHERE a.AuditId < @After
        ORDER BY a.AuditId DESC;
END;
GO
