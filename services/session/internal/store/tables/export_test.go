package tables

// Queries of counts, for tests of what they read.
var (
	CountTurns    = countedTurns.query
	CountSessions = countedSessions.query
)
