package openaiagents

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/stream"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// place is where an event of the wire stands, and how much of its item a client has with it.
type place struct {
	seq        int64
	part, text int
}

func (p place) String() string {
	if p.text == 0 {
		return fmt.Sprintf("%d.%d", p.seq, p.part)
	}
	return fmt.Sprintf("%d.%d.%d", p.seq, p.part, p.text)
}

func (p place) before(e Event) bool { return p.seq < e.Seq || p.seq == e.Seq && p.part < e.Part }

func placeOf(text string) (p place, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 2 && len(parts) != 3 {
		return p, false
	}
	var n [3]int64
	for i, part := range parts {
		var err error
		if n[i], err = strconv.ParseInt(part, 10, 48); err != nil || n[i] < 0 {
			return p, false
		}
	}
	return place{n[0], int(n[1]), int(n[2])}, true
}

// lastOfEvent is after all parts of an event of the log.
const lastOfEvent = 1 << 30

// streaming writes events as server-sent events. It reads the log from its beginning, and says what comes after a place.
type streaming struct {
	enc   *Encoder
	after place
	// first is the turn with which the stream ends: the one that its session began with. Empty: it goes on.
	first string
	open  bool
}

// streamEvents follows a session. It begins with the state of the session, or after the event that a client names.
func (s *eventsServer) streamEvents(c *request) (any, error) {
	release, err := s.wire.Acquire(c.R)
	if err != nil {
		return nil, err
	}
	defer release()
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	st := &streaming{enc: encoderOf(x), after: place{seq: x.GetLastSeq(), part: lastOfEvent}}
	if text := c.R.Header.Get("Last-Event-ID"); text != "" {
		p, ok := placeOf(text)
		if !ok || p.seq > x.GetLastSeq() {
			return nil, resource.Bad("Last-Event-ID", problem.Excerpt(text)+" is no id of an event of this stream")
		}
		st.after, st.open = p, true
	}
	return nil, s.send(c, x, st)
}

// streamFirst answers the creation of a session with its events, until its first turn has ended.
func (s *base) streamFirst(c *request, x *sessionv1.Session, turn string) error {
	return s.send(c, x, &streaming{enc: encoderOf(x), open: true, first: turn, after: place{part: -1}})
}

func (s *base) send(c *request, x *sessionv1.Session, st *streaming) error {
	f := s.wire.Follow(c.R.Context(), x.GetName(), 0)
	defer f.Close()
	return s.wire.Send(c.W, c.R, "openai-agents", f, st)
}

func encoderOf(x *sessionv1.Session) *Encoder {
	_, client := clientTools(sessionDocOf(x).Tools)
	return NewEncoder(plainSession(x), client)
}

var _ wire.Losing = (*streaming)(nil)

// Event implements wire.Encoder.
func (s *streaming) Event(dst []byte, ev *sessionv1.Event) ([]byte, bool, error) {
	if !s.open && ev.GetSeq() > s.after.seq {
		dst = s.begin(dst)
	}
	for _, e := range s.enc.Add(ev) {
		if s.after.before(e) {
			dst = s.write(dst, s.rest(ev, e))
		}
	}
	if !s.open && ev.GetSeq() == s.after.seq {
		dst = s.begin(dst)
	}
	if s.first != "" && ev.GetTurnFinished() != nil && ev.GetTurn() == s.first {
		return append(dst, "data: [DONE]\n\n"...), true, nil
	}
	return dst, false, nil
}

// begin says what the session does when a stream is opened.
func (s *streaming) begin(dst []byte) []byte {
	s.open = true
	return frame(dst, s.after.String(), s.enc.Now())
}

// rest returns what a client has not had of an event: its delta may be merged of one that the client has and later ones.
func (s *streaming) rest(ev *sessionv1.Event, e Event) Event {
	delta, ok := e.Body["delta"].(string)
	if !ok || s.after.text == 0 || ev.GetFirstSeq() > s.after.seq {
		return e
	}
	if had := s.after.text - (e.Text - len(delta)); had > 0 && had <= len(delta) {
		e.Body["delta"] = delta[had:]
	}
	return e
}

func (s *streaming) write(dst []byte, e Event) []byte { return frame(dst, e.place().String(), e.Body) }

func frame(dst []byte, id string, body any) []byte {
	data, err := json.Marshal(body)
	if err != nil {
		return dst // bodies are made of what can be marshaled
	}
	return stream.AppendFrame(dst, id, "", data)
}

// Ended implements wire.Encoder.
func (s *streaming) Ended(dst []byte, why error) []byte {
	return frame(dst, "", map[string]any{"type": "error", "event_id": "evt_ended", "session_id": s.enc.session, "error": map[string]any{
		"type": "authentication_error", "code": "invalid_api_key", "message": wire.FaultOf(why).Message, "param": nil,
	}})
}

// Lost implements wire.Losing: a session that is gone has been deleted, and never runs again.
func (s *streaming) Lost(dst []byte, why error) ([]byte, bool) {
	if problem.HTTPStatus(why) != 404 || s.enc.at == nil {
		return dst, false
	}
	s.enc.status, s.enc.error, s.enc.actions = statusFailed, "The session was deleted.", []any{}
	body := s.enc.Now()
	body["event_id"] = "evt_deleted"
	return frame(dst, "", body), true
}
