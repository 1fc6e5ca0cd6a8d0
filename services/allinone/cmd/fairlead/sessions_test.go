package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead/fairlead/clients/go/clienttest"
	sessionv1 "github.com/fairlead/fairlead/gen/go/fairlead/session/v1"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"the list takes all pages and is aligned", []string{"list"}, `
SESSION  AGENT      UPDATED  TURNS  STATE  COST     TITLE
s1       coder      -        0      idle   no cost  a title
another  assistant  -        12     idle   no cost  -
`},
		{"the list can be shorter", []string{"list", "--limit=1"}, `
SESSION  AGENT  UPDATED  TURNS  STATE  COST     TITLE
s1       coder  -        0      idle   no cost  a title
`},
		{"a session with its turns", []string{"show", "s1"}, `
session     s1
agent       coder
title       a title
created     -
updated     -
last event  0
used        0 tokens in, 0 out, no cost

TURN  STATE     CREATED  TIME  STEPS  USED                         SAID
t1    COMPLETE  -        -     0      0 tokens in, 0 out, no cost  done
`},
		{"as JSON", []string{"show", "sessions/s1", "--json"}, `
{"name":"sessions/s1","agent":"agents/coder","title":"a\u001b[2J title"}
{"name":"sessions/s1/turns/t1","state":"TURN_STATE_COMPLETE","finalText":"done"}
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := (&clienttest.Server{}).Start(t)
			got := embedded(t, append(append([]string{"sessions"}, c.args...), "--server", fake.Address)...)
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), got.out); diff != "" || got.code != 0 {
				t.Errorf("exit code %d %s (-want +got):\n%s", got.code, got.err, diff)
			}
		})
	}
}

func TestSessionEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"all of them", nil, 7},
		{"no more than asked for", []string{"--limit=3"}, 3},
		{"followed, until there are enough", []string{"--follow", "--limit=7"}, 7},
		{"followed from a place on", []string{"--follow", "--after-seq=5", "--limit=2"}, 2},
		{"as JSON", []string{"--json"}, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := (&clienttest.Server{Events: clienttest.Turn(sessionv1.TurnState_TURN_STATE_COMPLETE)}).Start(t)
			got := embedded(t, append([]string{"sessions", "events", "s1", "--server", fake.Address}, c.args...)...)
			if n := strings.Count(got.out, "\n"); n != c.want || got.code != 0 {
				t.Errorf("exit code %d, %d lines, want %d\n%s%s", got.code, n, c.want, got.out, got.err)
			}
		})
	}
}
