package managed

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
	"github.com/fairlead/fairlead/services/gateway/internal/problem"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/resource"
	"github.com/fairlead/fairlead/services/gateway/internal/wires/wire"
)

// place is where an event of the wire stands.
type place struct {
	seq  int64
	part int
}

func (p place) String() string { return fmt.Sprintf("%d.%d", p.seq, p.part) }

func (p place) before(e Event) bool { return p.seq < e.Seq || p.seq == e.Seq && p.part < e.Part }

func placeOf(text string) (p place, ok bool) {
	seq, part, ok := strings.Cut(text, ".")
	var err, err2 error
	p.seq, err = strconv.ParseInt(seq, 10, 64)
	p.part, err2 = strconv.Atoi(part)
	return p, ok && err == nil && err2 == nil && p.seq >= 0 && p.part >= 0
}

// history returns the events of a session, the oldest first, each once with what is known of it last.
func (s *eventsServer) history(c *request, x *sessionv1.Session) ([]Event, error) {
	enc := sessionDocOf(x).encoder()
	ctx, cancel := s.within(c)
	defer cancel()
	req := &sessionv1.ListEventsRequest{Parent: x.GetName(), PageSize: 1000}
	var all []*sessionv1.Event
	for ev, err := range wire.All(ctx, s.wire.Sessions.ListEvents, req, (*sessionv1.ListEventsResponse).GetEvents) {
		if err != nil {
			return nil, err
		}
		all = append(all, ev)
	}
	out := once(enc, all)
	if x.ArchiveTime != nil && len(all) > 0 {
		last := all[len(all)-1].GetSeq()
		out = append(out, Event{Seq: last, Part: lastOfEvent - 1, Body: terminated(stamp(x.ArchiveTime.AsTime()))})
	}
	return out, nil
}

// once returns the events that are kept, each once: in its first place, as it was last.
func once(enc *Encoder, log []*sessionv1.Event) []Event {
	var out []Event
	at := map[string]int{}
	for _, ev := range log {
		for _, e := range enc.Add(ev) {
			if e.Preview {
				continue
			}
			if i, ok := at[e.ID()]; ok {
				out[i].Body = e.Body
				continue
			}
			at[e.ID()] = len(out)
			out = append(out, e)
		}
	}
	return out
}

func (s *eventsServer) listEvents(c *request) (any, error) {
	l, err := c.list(1000, 1000, true)
	if err != nil {
		return nil, err
	}
	keep, err := l.between()
	if err != nil {
		return nil, err
	}
	if err := c.thread(); err != nil {
		return nil, err
	}
	order, after := "asc", place{}
	if !l.oldest {
		order = "desc"
	}
	if l.page != "" {
		var ok bool
		if after, ok = placeOf(strings.TrimPrefix(l.page, order+".")); !ok {
			return nil, resource.Bad("page", "it is no cursor of this list in this order")
		}
	}
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	all, err := s.history(c, x)
	if err != nil {
		return nil, err
	}
	if !l.oldest {
		slices.Reverse(all)
	}
	kinds := l.query["types[]"]
	var data []any
	var last Event
	for _, e := range all {
		if l.page != "" && (l.oldest && !after.before(e) || !l.oldest && (after.before(e) || after == place{e.Seq, e.Part})) {
			continue
		}
		at, _ := time.Parse(time.RFC3339, fmt.Sprint(e.Body["processed_at"]))
		if len(kinds) > 0 && !slices.Contains(kinds, e.Type()) || !keep(at) {
			continue
		}
		if len(data) == l.limit {
			return page(data, order+"."+place{last.Seq, last.Part}.String()), nil
		}
		data, last = append(data, e.Body), e
	}
	return page(data, ""), nil
}

// streamEvents follows a session.
func (s *eventsServer) streamEvents(c *request) (any, error) {
	if err := c.thread(); err != nil {
		return nil, err
	}
	release, err := s.wire.Acquire(c.R)
	if err != nil {
		return nil, err
	}
	defer release()
	x, err := s.session(c)
	if err != nil {
		return nil, err
	}
	enc := &streaming{enc: sessionDocOf(x).encoder(), after: place{x.GetLastSeq(), lastOfEvent}, deltas: c.R.URL.Query()["event_deltas[]"]}
	if text := c.R.Header.Get("Last-Event-ID"); text != "" {
		p, ok := placeOf(text)
		if !ok || p.seq > x.GetLastSeq() {
			return nil, resource.Bad("Last-Event-ID", problem.Excerpt(text)+" is no id of an event of this stream")
		}
		enc.after = p
	}
	enc.shown, enc.read = sessionDocOf(x).shown(x), func() (*sessionv1.Session, error) { return s.session(c) }
	f := s.wire.Follow(c.R.Context(), x.GetName(), 0)
	defer f.Close()
	return nil, s.wire.Send(c.W, c.R, "managed", f, enc)
}

// lastOfEvent is after all parts of an event of the log.
const lastOfEvent = 1 << 30

// streaming writes events as server-sent events. It reads the log from its beginning, and says what comes after a place.
type streaming struct {
	enc    *Encoder
	after  place
	deltas []string // the types whose previews the client wants
	open   bool

	// What the log does not have: the session as it was shown last, and what reads it.
	shown map[string]string
	read  func() (*sessionv1.Session, error)
	quiet int // heartbeats
}

// readEvery is how many heartbeats pass between two reads of the session, for changes that the service could not report.
const readEvery = 3

// shown returns what clients learn of when it changes.
func (d *sessionDoc) shown(x *sessionv1.Session) map[string]string {
	kept, _ := json.Marshal(d.Metadata) //nolint:errchkjson // texts cannot fail
	out := map[string]string{"title": x.GetTitle(), "metadata": string(kept)}
	if x.ArchiveTime != nil {
		out["status"] = stamp(x.ArchiveTime.AsTime())
	}
	return out
}

// Event implements wire.Encoder.
func (s *streaming) Event(dst []byte, ev *sessionv1.Event) ([]byte, bool, error) {
	if !s.open && ev.GetSeq() > s.after.seq {
		dst = s.begin(dst)
	}
	for _, e := range s.enc.Add(ev) {
		if s.after.before(e) {
			dst = s.write(dst, e)
		}
	}
	if !s.open && ev.GetSeq() == s.after.seq {
		dst = s.begin(dst)
	}
	return dst, false, nil
}

func (s *streaming) begin(dst []byte) []byte {
	s.open = true
	for _, e := range s.enc.Previews() {
		dst = s.write(dst, e)
	}
	return dst
}

func (s *streaming) write(dst []byte, e Event) []byte {
	if e.Preview {
		kind := "agent.message"
		if about, ok := e.Body["event"].(map[string]any); ok {
			kind, _ = about["type"].(string)
		}
		if !slices.Contains(s.deltas, kind) {
			return dst
		}
	} else {
		dst = append(dst, "id: "+place{e.Seq, e.Part}.String()+"\n"...)
	}
	return frame(dst, e.Type(), e.Body)
}

func frame(dst []byte, name string, body any) []byte {
	data, err := json.Marshal(body)
	if err != nil {
		return dst // bodies are made of what can be marshaled
	}
	return append(append(append(dst, "event: "+name+"\ndata: "...), data...), "\n\n"...)
}

// Ended implements wire.Encoder.
func (s *streaming) Ended(dst []byte, why error) []byte {
	return frame(dst, "error", map[string]any{"type": "error", "error": map[string]any{"type": "authentication_error", "message": problem.Status(why).Message()}})
}

// Quiet implements wire.Waiting.
func (s *streaming) Quiet(ctx context.Context, dst []byte) ([]byte, bool) {
	if s.quiet++; s.quiet%readEvery != 0 {
		return dst, false
	}
	return s.Changed(ctx, dst)
}

// Changed implements wire.Waiting: a title, metadata and the end of a session are not in its log.
func (s *streaming) Changed(_ context.Context, dst []byte) ([]byte, bool) {
	x, err := s.read()
	if err != nil {
		return dst, false // the log ends if the session has been deleted
	}
	d := sessionDocOf(x)
	now, changed := d.shown(x), map[string]any{}
	if now["title"] != s.shown["title"] {
		changed["title"] = resource.Optional(x.GetTitle())
	}
	if now["metadata"] != s.shown["metadata"] {
		changed["metadata"] = d.Metadata
	}
	at := stamp(x.GetUpdateTime().AsTime())
	if len(changed) > 0 {
		changed["type"], changed["id"], changed["processed_at"] = "session.updated", "sevt_s_"+strings.NewReplacer(":", "", ".", "", "-", "").Replace(at), at
		dst = frame(dst, "session.updated", changed)
	}
	if now["status"] != "" && s.shown["status"] == "" {
		dst = frame(dst, "session.status_terminated", terminated(now["status"]))
	}
	s.shown = now
	return dst, false
}

// terminated tells that a session takes no more messages.
func terminated(at string) map[string]any {
	return map[string]any{"type": "session.status_terminated", "id": "sevt_terminated", "processed_at": at}
}

// Lost implements wire.Losing: a session that is gone has been deleted.
func (s *streaming) Lost(dst []byte, why error) ([]byte, bool) {
	if problem.HTTPStatus(why) != 404 {
		return dst, false
	}
	dst = frame(dst, "session.status_terminated", terminated(stamp(time.Now())))
	return frame(dst, "session.deleted", map[string]any{"type": "session.deleted", "id": "sevt_deleted", "processed_at": stamp(time.Now())}), true
}
