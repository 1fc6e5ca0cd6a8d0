package mcp

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	"github.com/fairlead/fairlead/services/tools/internal/store"
)

// The sandbox keeps the epochs of a workspace's session and of subagents in it apart: one under the other's name would
// fence it out.
func TestACommandRunsUnderTheEpochOfItsCaller(t *testing.T) {
	root := Caller{User: "ann", Ref: store.Ref{Session: "sessions/root", Epoch: 5}}
	child := Caller{User: "ann", Ref: store.Ref{Session: "sessions/root", Holder: "sessions/sub-1", Epoch: 1}}
	late := root
	late.Ref.Epoch = 4
	s := offer{McpServer: &commonv1.McpServer{Transport: &commonv1.McpServer_Stdio{Stdio: &commonv1.McpStdio{Command: "c"}}}}
	l := newLink(t.Context(), &Pool{}, strings.Repeat("k", 64), root, s)
	defer l.stop(nil)
	for i, c := range []struct{ holds, want Caller }{{root, root}, {late, root}, {child, child}, {root, root}} {
		l.hold(c.holds)
		if got := l.newProcess().call; got.Holder != c.want.Ref.Holder || got.Epoch != c.want.Ref.Epoch || got.Session != "sessions/root" {
			t.Errorf("%d: the command runs for %v", i, got)
		}
	}
}

func TestLinesThatAreNoMessagesAreSkipped(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":1,"result":{"ok":true}}`
	for _, noise := range []string{
		"Listening on stdio", `{"level":"info","msg":"started"}`, `{"jsonrpc":"1.0","id":1,"result":{}}`, `{"id":1,"result":{}}`, `{"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":1.5,"method":7}`, `{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","id":{},"result":{}}`, `{}`, `[]`, `["info","started"]`, `[{"level":"info"}]`, `[[` + answer + `]]`,
		"12", "true", "null", `"text"`, `{"jsonrpc":`, answer + answer, "\x1b[32mINFO\x1b[0m", "\xff\xfe", "", "   ", "\r", `{"jsonrpc":"2.0","id":1,"error":"text"}`,
	} {
		seen, kept := 0, ""
		m := newMessages(io.NopCloser(strings.NewReader(noise+"\n"+answer+"\n")), func(b []byte) { kept += string(b) }, func([]byte) { seen++ })
		got, err := io.ReadAll(m)
		if err != nil || string(got) != answer+"\n" || seen != 1 || kept != noise+"\n" {
			t.Errorf("%q: read %q, %v; saw %d, kept %q", noise, got, err, seen, kept)
		}
	}
}

func TestMessagesAreReadInEveryForm(t *testing.T) {
	const one, two = `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`
	for in, want := range map[string][]string{
		one: {one}, "  " + one + "\r": {one}, "\t" + two + "  ": {two}, "\ufeff" + one: {one}, "[" + one + "," + two + "]": {one, two}, `["log",` + one + `,{"level":"info"},` + two + "]": {one, two},
		`{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"m"}}`: {`{"jsonrpc":"2.0","id":"a","error":{"code":-1,"message":"m"}}`},
	} {
		var seen []string
		m := newMessages(io.NopCloser(strings.NewReader(in+"\n")), func([]byte) {}, func(b []byte) { seen = append(seen, string(b)) })
		got, err := io.ReadAll(m)
		if err != nil || string(got) != strings.Join(want, "\n")+"\n" || !slices.Equal(seen, want) {
			t.Errorf("%q: read %q, %v; saw %q", in, got, err, seen)
		}
	}
}

func TestNoiseWithoutAMessageEndsTheConnection(t *testing.T) {
	read := 0
	endless := readerFunc(func(p []byte) (int, error) {
		n := copy(p, strings.Repeat("{\"level\":\"info\"}\n", 100))
		if read += n; read > 4*maxNoise {
			return 0, io.EOF
		}
		return n, nil
	})
	_, err := io.ReadAll(newMessages(io.NopCloser(endless), func([]byte) {}, func([]byte) {}))
	if err == nil || errors.Is(err, io.EOF) || read > 2*maxNoise {
		t.Errorf("%v after %d bytes", err, read)
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
