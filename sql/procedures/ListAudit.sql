SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
-- ListAudit: operators' actions, newest first, on one target or on all.
-- Called by: operators.
-- Parameters: @Target a job id or a queue name (empty: any); @Limit rows; @After the smallest id of the page before (0: the first
--   page).
-- Result: AuditId, AtUtc, Actor, Action, Target, Reason, BeforeState, AfterState.
-- Table order: AuditLog.
CREATE OR ALTER PROCEDURE chokaq.ListAudit
    @Target varchar(255),
    @Limit  int,
    @After  bigint
AS
BEGIN
    SET NOCOUNT ON;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    SELECT TOP (@Limit) a.AuditId AS AuditId, a.AtUtc AS AtUtc, a.Actor AS Actor, a.Action AS Action, a.Target AS Target,
           a.Reason AS Reason, a.BeforeState AS BeforeState, a.AfterState AS AfterState
    FROM chokaq.AuditLog a
    WHERE (@Target = '' OR a.Target = @Target) AND (@After = 0 OR a.AuditId < @After)
    ORDER BY a.AuditId DESC
    OPTION (RECOMPILE);
END;
GO
