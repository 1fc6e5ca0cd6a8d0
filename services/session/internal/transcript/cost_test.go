package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// many joins n texts that are made of their numbers.
func many(n int, before, format, behind string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return before + strings.TrimSuffix(b.String(), ",") + behind
}

// TestTheWorkOfACheckIsLinear checks files that took hours when each call was compared with each, and each summary was
// followed back to the beginning. Under `go test -short` they are a tenth of that.
func TestTheWorkOfACheckIsLinear(t *testing.T) {
	n := 40_000
	if testing.Short() {
		n /= 10
	}
	const asks = `{"type":"message","message":{"name":"sessions/s/messages/x","role":"ROLE_ASSISTANT","createTime":"2026-01-01T00:00:00Z","blocks":[`
	const answers = `{"type":"message","message":{"name":"sessions/s/messages/y","parent":"sessions/s/messages/x","role":"ROLE_USER","createTime":"2026-01-01T00:00:00Z","blocks":[`
	summary := func(parent string) string {
		return `{"type":"message","message":{"name":"sessions/s/messages/z%[1]d","parent":"sessions/s/messages/` + parent + `","role":"ROLE_USER","createTime":"2026-01-01T00:00:00Z","compaction":{}}}` + "\n"
	}
	calls := func(n int) string { return many(n, asks, `{"toolUse":{"callId":"c%d","tool":"Bash"}},`, "]}}\n") }
	results := many(n, answers, `{"toolResult":{"callId":"c%d"}},`, "]}}\n")
	var chain strings.Builder
	for i := range n / 4 {
		parent := "x"
		if i > 0 {
			parent = fmt.Sprintf("z%06d", (i*7919-7919+n/4*7919)%(n/4)) // names in another order than the messages
		}
		fmt.Fprintf(&chain, strings.Replace(summary(parent), "z%[1]d", "z%06[1]d", 1), i*7919%(n/4))
	}
	for what, messages := range map[string]string{
		"calls and results":    calls(n) + results,
		"a chain of summaries": calls(10) + chain.String(),
		"summaries of calls":   calls(2000) + many(n/4, "", summary("x"), ""),
	} {
		body := strings.Join(small[:6], "\n") + "\n" + messages + strings.Join(small[6:], "\n") + "\n"
		if _, err := check(sealed(body)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestACheckEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := corpus(t)
	if _, err := Check(ctx, bytes.NewReader(file), int64(len(file))); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}
