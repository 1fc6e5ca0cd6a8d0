package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead/fairlead/services/session/internal/model"
)

func TestPiecesOfOneReadAreJoined(t *testing.T) {
	var got []string
	_, w := Begin(t.Context(), "p", "", 0)
	emit := w.Gather(func(d model.Delta) error {
		got = append(got, fmt.Sprintf("%d/%d:%s", d.Kind, d.Block, d.Text))
		return nil
	})
	piece := func(kind model.DeltaKind, block int, text string) {
		if err := emit(model.Delta{Kind: kind, Block: block, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	s := &stream{body: body{ReadCloser: io.NopCloser(strings.NewReader("x")), watch: w, left: 1}}
	piece(model.TextStart, 0, "")
	piece(model.TextDelta, 0, "a")
	piece(model.TextDelta, 0, "b")
	if len(got) != 1 {
		t.Errorf("emitted %v before the next read", got)
	}
	if _, err := s.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	piece(model.TextDelta, 0, "c")
	piece(model.TextEnd, 0, "")
	piece(model.ToolUseDelta, 1, "d")
	piece(model.ToolUseDelta, 2, "e")
	w.End()
	want := "0/0: 1/0:ab 1/0:c 2/0: 7/1:d 7/2:e"
	if strings.Join(got, " ") != want {
		t.Errorf("emitted %v, want %s", got, want)
	}
}

func TestAFailureOfAHeldPieceEndsTheStreamUnchanged(t *testing.T) {
	refused := errors.New("refused")
	ctx, w := Begin(t.Context(), "p", "", 0)
	defer w.End()
	emit := w.Gather(func(model.Delta) error { return refused })
	if err := emit(model.Delta{Kind: model.TextDelta, Text: "a"}); err != nil {
		t.Fatal(err)
	}
	s := &stream{body: body{ReadCloser: io.NopCloser(strings.NewReader("x")), watch: w, left: 1}}
	_, err := s.Read(make([]byte, 1))
	if !errors.Is(err, refused) || w.Fail(ctx, fmt.Errorf("read: %w", err)) != refused { //nolint:errorlint // the same error
		t.Errorf("got %v", err)
	}
	if err := emit(model.Delta{Kind: model.TextEnd}); !errors.Is(err, refused) {
		t.Errorf("the next piece: %v", err)
	}
}

func TestABusyProcessReadsItsStreamsAtAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		p := pace{most: 20_000}
		for _, c := range []struct {
			streams int64
			last    time.Time
			wait    time.Duration
		}{
			{1, now, 0}, {30, now, 0}, {200, now, 10 * time.Millisecond}, {200, now.Add(-4 * time.Millisecond), 6 * time.Millisecond},
			{1000, now, 50 * time.Millisecond}, {100_000, now, longestPause}, {1000, now.Add(-time.Second), -950 * time.Millisecond},
		} {
			p.streams.Store(c.streams)
			if got := p.pause(c.last); got != c.wait {
				t.Errorf("%d streams, %v after a read: %v, want %v", c.streams, now.Sub(c.last), got, c.wait)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, w := Begin(ctx, "p", "", 0)
		defer w.End()
		s := &stream{body: body{watch: w}}
		s.wait(time.Second)
		cancel()
		s.wait(time.Hour) // its request has ended
		if took := time.Since(now); took != time.Second {
			t.Errorf("waited %v", took)
		}
	})
}
