package worker

import (
	"strings"
	"testing"
)

func TestWhichCallAWorkerMakes(t *testing.T) {
	const (
		one   = `{"id":"1","type":"agent.tool_use","name":"bash","input":{"command":"a"},"processed_at":"2026-01-01T00:00:01Z"}`
		two   = `{"id":"2","type":"agent.tool_use","name":"read","evaluated_permission":"allow","processed_at":"2026-01-01T00:00:02Z"}`
		asked = `{"id":"3","type":"agent.tool_use","name":"bash","evaluated_permission":"ask","session_thread_id":"t"}`
		idle  = `{"id":"i","type":"session.status_idle","stop_reason":{"type":"end_turn"},"processed_at":"2026-01-01T00:01:00Z"}`
	)
	for name, c := range map[string]struct {
		events []string
		next   string
		held   bool
		idle   bool
		over   string
	}{
		"nothing":                            {},
		"the first open call":                {[]string{one, two}, "1", true, false, ""},
		"the one after an answered call":     {[]string{one, two, `{"id":"4","type":"user.tool_result","tool_use_id":"1","content":[]}`}, "2", true, false, ""},
		"none that the server has answered":  {[]string{one, `{"id":"4","type":"agent.tool_result","tool_use_id":"1"}`}, "", false, false, ""},
		"none of another tool":               {[]string{`{"id":"1","type":"agent.tool_use","name":"web_search"}`}, "", false, false, ""},
		"none that is denied":                {[]string{`{"id":"1","type":"agent.tool_use","name":"bash","evaluated_permission":"deny"}`}, "", false, false, ""},
		"none that a person must allow":      {[]string{asked}, "", true, false, ""},
		"none of a permission it knows not":  {[]string{`{"id":"1","type":"agent.tool_use","name":"bash","evaluated_permission":"perhaps"}`}, "", true, false, ""},
		"one that a person has allowed":      {[]string{asked, `{"id":"4","type":"user.tool_confirmation","tool_use_id":"3","result":"allow"}`}, "3", true, false, ""},
		"one that was allowed before it":     {[]string{`{"id":"4","type":"user.tool_confirmation","tool_use_id":"3","result":"allow"}`, asked}, "3", true, false, ""},
		"none that a person has denied":      {[]string{asked, `{"id":"4","type":"user.tool_confirmation","tool_use_id":"3","result":"deny"}`}, "", false, false, ""},
		"none that was interrupted":          {[]string{one, two, `{"id":"4","type":"user.interrupt"}`}, "", false, false, ""},
		"one after the interrupt":            {[]string{one, `{"id":"4","type":"user.interrupt","processed_at":"2026-01-01T00:00:01Z"}`, two}, "2", true, false, ""},
		"an interrupt that is listed before": {[]string{`{"id":"4","type":"user.interrupt","processed_at":"2026-01-01T00:00:01Z"}`, one}, "", false, false, ""},
		"an interrupt that comes again":      {[]string{`{"id":"4","type":"user.interrupt"}`, one, `{"id":"4","type":"user.interrupt"}`}, "1", true, false, ""},
		"none of a thread that has ended":    {[]string{asked, `{"id":"4","type":"session.thread_status_terminated","session_thread_id":"t"}`, one}, "1", true, false, ""},
		"idle after the turn":                {[]string{one, `{"id":"4","type":"user.tool_result","tool_use_id":"1"}`, idle}, "", false, true, ""},
		"not idle in the next turn":          {[]string{idle, `{"id":"5","type":"user.message","content":[]}`}, "", false, false, ""},
		"not idle when it waits for calls":   {[]string{`{"id":"4","type":"session.status_idle","stop_reason":{"type":"requires_action","event_ids":["1"]}}`}, "", false, false, ""},
		"idle as before after old events":    {[]string{`{"id":"5","type":"user.message"}`, idle, `{"id":"5","type":"user.message"}`}, "", false, true, ""},
		"a deleted session":                  {[]string{`{"id":"4","type":"session.deleted"}`}, "", false, false, typeDeleted},
		"unknown events with odd fields":     {[]string{`{"id":"4","type":"new.event","name":5,"input":7,"stop_reason":[]}`, one}, "1", true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h, known := newHistory(), (&workspace{}).knows
			for _, raw := range c.events {
				e, err := decode([]byte(raw))
				if err != nil {
					t.Fatal(err)
				}
				h.apply(e)
			}
			next := ""
			if e := h.next(known); e != nil {
				next = e.ID
			}
			if next != c.next || h.held(known) != c.held || h.idle != c.idle || h.over != c.over {
				t.Errorf("next %q, held %v, idle %v, over %q after\n%s", next, h.held(known), h.idle, h.over, strings.Join(c.events, "\n"))
			}
		})
	}
}

func TestALongOutputIsCutInTheMiddle(t *testing.T) {
	o := &output{}
	for range 1000 {
		o.write([]byte(strings.Repeat("ä", 1000)))
	}
	got := o.String()
	if !strings.HasPrefix(got, "ää") || !strings.HasSuffix(got, "ä") || !strings.Contains(got, " bytes cut] ...") || len(got) > 3*sideBytes || strings.Contains(got[len(got)/2+100:], "\uFFFD") {
		t.Errorf("%d bytes: %.60s", len(got), got[len(got)/2-30:])
	}
}
