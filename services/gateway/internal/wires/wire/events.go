package wire

import (
	"context"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

// eventPage is how many events are read at once.
const eventPage = 1000

// Events reads the log of a session after a number, up to another one.
func (s *Server) Events(ctx context.Context, session string, after, until int64) (all []*sessionv1.Event, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	for token := ""; ; {
		page, err := s.Sessions.ListEvents(ctx, &sessionv1.ListEventsRequest{Parent: session, AfterSeq: after, PageSize: eventPage, PageToken: token})
		if err != nil {
			return nil, err
		}
		all = append(all, page.GetEvents()...)
		token = page.GetNextPageToken()
		if token == "" || len(all) > 0 && all[len(all)-1].GetSeq() >= until {
			return all, nil
		}
	}
}
