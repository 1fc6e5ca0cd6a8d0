package store

import (
	"time"

	"github.com/fairlead/fairlead/services/session/internal/search"
)

// MessageSearch finds messages that have all the words, the newest first.
type MessageSearch struct {
	Tenant  string
	Session string // only this session's, by id; empty: all
	User    string // only of sessions of this user, by id; empty: of all
	Words   []search.Word
	// After continues behind this message (create time, session and id, all
	// descending).
	AfterTime                  time.Time
	AfterSession, AfterMessage string
	Limit                      int
}
