-- grants: what each role may execute. Re-runnable; applied last, since a procedure that is made anew has lost its grants on some engines.
-- No role has a right on a table: the procedures are the only way in. Workers may enqueue too: handlers do.
SET QUOTED_IDENTIFIER ON;
SET ANSI_NULLS ON;
GO
GRANT EXECUTE ON chokaq.EnqueueJobs TO chokaq_client;
GRANT EXECUTE ON chokaq.GetJob TO chokaq_client;
GRANT EXECUTE ON chokaq.GetStatuses TO chokaq_client;
GRANT EXECUTE ON chokaq.CancelJobs TO chokaq_client;
GRANT EXECUTE ON chokaq.GetClock TO chokaq_client;
GO
GRANT EXECUTE ON chokaq.GetClock TO chokaq_worker;
GRANT EXECUTE ON chokaq.RegisterWorker TO chokaq_worker;
GRANT EXECUTE ON chokaq.FetchJobs TO chokaq_worker;
GRANT EXECUTE ON chokaq.StartJobs TO chokaq_worker;
GRANT EXECUTE ON chokaq.KeepAlive TO chokaq_worker;
GRANT EXECUTE ON chokaq.ArchiveSucceeded TO chokaq_worker;
GRANT EXECUTE ON chokaq.RescheduleForRetry TO chokaq_worker;
GRANT EXECUTE ON chokaq.ArchiveFailed TO chokaq_worker;
GRANT EXECUTE ON chokaq.ReleaseJobs TO chokaq_worker;
GRANT EXECUTE ON chokaq.ListQueues TO chokaq_worker;
GRANT EXECUTE ON chokaq.TakeLeadership TO chokaq_worker;
GRANT EXECUTE ON chokaq.ListHotQueues TO chokaq_worker;
GRANT EXECUTE ON chokaq.ReleaseWorker TO chokaq_worker;
GRANT EXECUTE ON chokaq.RecoverAbandoned TO chokaq_worker;
GRANT EXECUTE ON chokaq.ArchiveZombies TO chokaq_worker;
GRANT EXECUTE ON chokaq.PurgeArchive TO chokaq_worker;
GRANT EXECUTE ON chokaq.PurgeDLQ TO chokaq_worker;
GRANT EXECUTE ON chokaq.PurgeLeftovers TO chokaq_worker;
GRANT EXECUTE ON chokaq.RollUp TO chokaq_worker;
GRANT EXECUTE ON chokaq.ClaimRuns TO chokaq_worker;
GRANT EXECUTE ON chokaq.RenewClaims TO chokaq_worker;
GRANT EXECUTE ON chokaq.CompleteRuns TO chokaq_worker;
GRANT EXECUTE ON chokaq.ReleaseClaims TO chokaq_worker;
GRANT EXECUTE ON chokaq.EnqueueJobs TO chokaq_worker;
GRANT EXECUTE ON chokaq.GetJob TO chokaq_worker;
GRANT EXECUTE ON chokaq.GetStatuses TO chokaq_worker;
GRANT EXECUTE ON chokaq.CancelJobs TO chokaq_worker;
GO
GRANT EXECUTE ON chokaq.GetClock TO chokaq_operator;
GRANT EXECUTE ON chokaq.GetJob TO chokaq_operator;
GRANT EXECUTE ON chokaq.GetStatuses TO chokaq_operator;
GRANT EXECUTE ON chokaq.ListJobs TO chokaq_operator;
GRANT EXECUTE ON chokaq.ListQueues TO chokaq_operator;
GRANT EXECUTE ON chokaq.ListWorkers TO chokaq_operator;
GRANT EXECUTE ON chokaq.ListAttempts TO chokaq_operator;
GRANT EXECUTE ON chokaq.ListClaims TO chokaq_operator;
GRANT EXECUTE ON chokaq.ListAudit TO chokaq_operator;
GRANT EXECUTE ON chokaq.ListBuckets TO chokaq_operator;
GRANT EXECUTE ON chokaq.ListHotQueues TO chokaq_operator;
GRANT EXECUTE ON chokaq.CancelJobs TO chokaq_operator;
GRANT EXECUTE ON chokaq.SetQueue TO chokaq_operator;
GRANT EXECUTE ON chokaq.EnqueueJobs TO chokaq_operator;
GRANT SELECT ON chokaq.Jobs TO chokaq_operator;
GO
GRANT EXECUTE ON chokaq.GetClock TO chokaq_reader;
GRANT EXECUTE ON chokaq.GetJob TO chokaq_reader;
GRANT EXECUTE ON chokaq.GetStatuses TO chokaq_reader;
GRANT EXECUTE ON chokaq.ListJobs TO chokaq_reader;
GRANT EXECUTE ON chokaq.ListQueues TO chokaq_reader;
GRANT EXECUTE ON chokaq.ListWorkers TO chokaq_reader;
GRANT EXECUTE ON chokaq.ListAttempts TO chokaq_reader;
GRANT EXECUTE ON chokaq.ListClaims TO chokaq_reader;
GRANT EXECUTE ON chokaq.ListAudit TO chokaq_reader;
GRANT EXECUTE ON chokaq.ListBuckets TO chokaq_reader;
GRANT EXECUTE ON chokaq.ListHotQueues TO chokaq_reader;
GRANT SELECT ON chokaq.Jobs TO chokaq_reader;
GO
