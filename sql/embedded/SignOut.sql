-- SignOut: a session of The Deck was ended before its time. Called by The Deck, when somebody signs out. A repeat changes nothing.
-- Result: none.
-- Table order: SignOuts.

-- name: write
INSERT OR IGNORE INTO SignOuts (SessionId, EndedAtUtc, UntilUtc) SELECT :session, :now, :until WHERE :until > :now;
