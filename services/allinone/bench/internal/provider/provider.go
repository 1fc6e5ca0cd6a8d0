// Package provider is a model server for measurements. It uses the wire formats
// of Anthropic's Messages API and of OpenAI's Responses API, like
// services/session/modeltest. Unlike that package it checks and stores nothing, so that a thousand concurrent streams
// cost little. Every token contains the time at which it was sent, so that a
// reader on the same machine can compute how long it took.
package provider

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Plan is how a model answers. It is in the text of the requesting message.
type Plan struct {
	Tokens int
	Every  time.Duration // between two tokens
	First  time.Duration // from the request to the first one
	Start  time.Time     // not before; zero: at once
	// Calls is how many times, one after the other, the model asks for the command `echo` before it answers.
	// Only the Messages API can ask.
	Calls int
}

const mark = "bench plan "

// Prompt returns a message that makes the model follow the plan.
func (p Plan) Prompt() string {
	start := int64(0)
	if !p.Start.IsZero() {
		start = p.Start.UnixNano()
	}
	return fmt.Sprintf("%s%d %d %d %d %d .", mark, p.Tokens, p.Every, p.First, start, p.Calls)
}

// planOf finds the plan in the last message of a user. Calls is what is left of it.
func planOf(body []byte) (Plan, error) {
	i := bytes.LastIndex(body, []byte(mark))
	if i < 0 {
		return Plan{}, fmt.Errorf("the request holds no plan")
	}
	fields := bytes.Fields(body[i+len(mark) : min(len(body), i+len(mark)+120)])
	var n [5]int64
	for j := range n {
		if j >= len(fields) {
			return Plan{}, fmt.Errorf("the plan is cut off")
		}
		v, err := strconv.ParseInt(string(fields[j]), 10, 64)
		if err != nil {
			return Plan{}, fmt.Errorf("the plan cannot be read: %w", err)
		}
		n[j] = v
	}
	made := bytes.Count(body[i:], []byte(`"type":"tool_result"`))
	p := Plan{Tokens: int(n[0]), Every: time.Duration(n[1]), First: time.Duration(n[2]), Calls: int(n[4]) - made}
	if n[3] != 0 {
		p.Start = time.Unix(0, n[3])
	}
	return p, nil
}

// Handler answers POST /v1/messages and POST /v1/responses.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", serve(messages))
	mux.HandleFunc("POST /v1/responses", serve(responses))
	return mux
}

func serve(f format) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		arrived := time.Now()
		if err != nil {
			return // the client has gone
		}
		p, err := planOf(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		answer := answering{w: w, control: http.NewResponseController(w), arrived: arrived, format: f}
		answer.stream(r.Context(), p)
	}
}

// answering is one answer in progress.
type answering struct {
	w       io.Writer
	control *http.ResponseController
	arrived time.Time
	format  format
	buf     []byte
}

// stream sends the headers at once, the first token in one write with the start
// of its block, as real servers do, and the rest at the plan's pace.
func (a *answering) stream(ctx context.Context, p Plan) {
	a.buf = append(a.buf, a.format.start...)
	if !a.flush() || !wait(ctx, max(p.First, time.Until(p.Start))) {
		return
	}
	if p.Calls > 0 && a.format.call != "" {
		a.buf = fmt.Appendf(a.buf, a.format.call, a.arrived.UnixNano())
		a.flush()
		return
	}
	a.buf = append(a.buf, a.format.block...)
	next := time.Now()
	for i := range p.Tokens {
		a.token(i == 0)
		if !a.flush() {
			return
		}
		next = next.Add(p.Every)
		if !wait(ctx, time.Until(next)) {
			return
		}
	}
	a.buf = append(a.buf, a.format.end...)
	a.flush()
}

// token appends a token: the time and, in the first one, also the arrival time
// of the request.
func (a *answering) token(first bool) {
	a.buf = append(a.buf, a.format.token...)
	if first {
		a.buf = append(a.buf, 'a')
		a.buf = strconv.AppendInt(a.buf, a.arrived.UnixNano(), 10)
		a.buf = append(a.buf, ' ')
	}
	a.buf = strconv.AppendInt(a.buf, time.Now().UnixNano(), 10)
	a.buf = append(a.buf, ' ')
	a.buf = append(a.buf, a.format.tokenEnd...)
}

// flush reports whether the client still reads.
func (a *answering) flush() bool {
	_, err := a.w.Write(a.buf)
	a.buf = a.buf[:0]
	return err == nil && a.control.Flush() == nil
}

func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
