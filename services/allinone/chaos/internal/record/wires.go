package record

// WireFollower is a client that follows a session through one of the gateway's protocols.
type WireFollower struct {
	Wire string
	// Told says that the wire never takes back what it told.
	Told        bool
	Connections int // how often it connected
	Broken      int // how often a connection broke that it wanted to keep
	// Shown is what it showed.
	Shown []Shown
	// Failed is why it did not come to the end of the log; empty if it did.
	Failed string
}

// Shown is what a client shows of a turn, or of all turns.
type Shown struct {
	Turn string // its id; empty: all turns
	// Live says that the client saw it happen, so it may have been taken back since.
	Live  bool
	Text  string // that the agent says
	Calls []ShownCall
	// Lacks says that calls may be missing: the client did not see all of them happen, and its wire lists none.
	Lacks bool
}

// ShownCall is a call of a tool, as a client shows it.
type ShownCall struct {
	ID, Tool  string
	Arguments *string // nil: the client shows none
	Some      bool    // of the arguments, the client shows some alone
	Result    *string // nil: the client shows none
}

// Argue sets the arguments.
func (c *ShownCall) Argue(arguments string) { c.Arguments = &arguments }

// Call returns a call, which is added if there is none with this id.
func (s *Shown) Call(id string) *ShownCall {
	for i := range s.Calls {
		if s.Calls[i].ID == id {
			return &s.Calls[i]
		}
	}
	s.Calls = append(s.Calls, ShownCall{ID: id})
	return &s.Calls[len(s.Calls)-1]
}
