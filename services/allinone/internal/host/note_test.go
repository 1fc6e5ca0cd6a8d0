package host

import (
	"log/slog"
	"testing"
)

func TestANoteOfAnEarlierServerIsForgotten(t *testing.T) {
	data := t.TempDir()
	n := note{data: data, log: slog.New(slog.DiscardHandler), addresses: map[string]string{}}
	n.listening("http", "127.0.0.1:1")
	n.listening("public", "127.0.0.1:2")
	if got := Addresses(data); got["http"] != "127.0.0.1:1" || got["public"] != "127.0.0.1:2" {
		t.Errorf("noted %v", got)
	}
	for range 2 { // also without a note
		if err := forget(data); err != nil {
			t.Fatal(err)
		}
	}
	if got := Addresses(data); len(got) > 0 {
		t.Errorf("still noted: %v", got)
	}
}
