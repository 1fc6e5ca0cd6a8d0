package record

import (
	"encoding/json"
	"os"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Save writes the run to a file, as JSON for people and tools.
func (r *Run) Save(file string) error {
	type stream struct {
		Stream
		Events []json.RawMessage
	}
	type follower struct {
		Name    string
		Streams []stream
	}
	type session struct {
		*Session
		Followers            []follower
		Log, Turns, Messages []json.RawMessage
		Again                []json.RawMessage `json:",omitempty"`
	}
	out := struct {
		*Run
		Sessions []session
	}{Run: r}
	for _, s := range r.Sessions {
		v := session{Session: s, Log: messages(s.Log), Turns: messages(s.Turns), Messages: messages(s.Messages)}
		for _, f := range s.Followers {
			w := follower{Name: f.Name}
			for _, st := range f.Streams {
				w.Streams = append(w.Streams, stream{*st, messages(st.Events)})
			}
			v.Followers = append(v.Followers, w)
		}
		out.Sessions = append(out.Sessions, v)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}

func messages[M proto.Message](ms []M) []json.RawMessage {
	out := make([]json.RawMessage, 0, len(ms))
	for _, m := range ms {
		text, err := protojson.Marshal(m)
		if err != nil {
			text = []byte("null") // text that is not UTF-8, which no client can have sent
		}
		out = append(out, text)
	}
	return out
}
