package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	commonv1 "github.com/fairlead/fairlead/gen/go/fairlead/common/v1"
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	toolsv1 "github.com/fairlead/fairlead/gen/go/fairlead/tools/v1"
	"github.com/fairlead/fairlead/services/internal/kit/media/mediatest"
	"github.com/fairlead/fairlead/services/internal/kit/node"
	"github.com/fairlead/fairlead/services/internal/kit/principal"
	"github.com/fairlead/fairlead/services/internal/kit/rpc"
	"github.com/fairlead/fairlead/services/tools/internal/remote"
	"github.com/fairlead/fairlead/services/tools/internal/sandboxtest"
	"github.com/fairlead/fairlead/services/tools/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const session = "sessions/s1"

// sink keeps what a call tells.
type sink struct {
	output   strings.Builder
	progress []string
}

func (s *sink) Ask(context.Context, *commonv1.Question) (*commonv1.QuestionAnswer, error) {
	return nil, errors.New("built-in tools ask nothing")
}
func (s *sink) Progress(m string)              { s.progress = append(s.progress, m) }
func (s *sink) Output(stream string, b []byte) { s.output.WriteString(stream + ":" + string(b)) }

// world is the built-in tools on a sandbox in memory, which is not the first of the nodes.
type world struct {
	t       testing.TB
	sandbox *sandboxtest.Sandbox
	tools   map[string]*tool.Tool
	calls   int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s, conn := sandboxtest.New(t)
	nodes, err := node.Dial([]string{"away=127.0.0.1:1", "here=x"}, func(address string) (*grpc.ClientConn, error) {
		if address == "x" {
			return conn, nil
		}
		return rpc.Dial(address)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Close() })
	all, err := All(remote.Sandbox(nodes), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, sandbox: s, tools: map[string]*tool.Tool{}}
	for _, made := range all {
		w.tools[made.Name] = made
	}
	return w
}

func (w *world) ctx() context.Context {
	return principal.With(w.t.Context(), principal.Service("default", "default"))
}

// run makes a call as the engine does.
func (w *world) run(name, arguments string) (*tool.Result, error) {
	w.t.Helper()
	w.calls++
	args, err := w.tools[name].Arguments(arguments)
	if err != nil {
		return tool.Failed(err.Error()), nil
	}
	c := tool.Call{Session: session, Epoch: 1, Node: "here", ID: "c" + string(rune('a'+w.calls%26)) + strings.Repeat("x", w.calls/26), Arguments: args.Raw}
	return w.tools[name].Runner.Run(w.ctx(), c, &sink{})
}

// want makes a call and compares its text.
func (w *world) want(name, arguments string, outcome toolsv1.CallOutcome, text string) {
	w.t.Helper()
	r, err := w.run(name, arguments)
	if err != nil {
		w.t.Fatal(err)
	}
	if got := tool.Text(r); r.GetOutcome() != outcome || got != text {
		w.t.Errorf("%s %.200s:\ngot  %v %q\nwant %v %q", name, arguments, r.GetOutcome(), got, outcome, text)
	}
}

// contains makes a call and looks for a part of its text.
func (w *world) contains(name, arguments string, outcome toolsv1.CallOutcome, part string) {
	w.t.Helper()
	r, err := w.run(name, arguments)
	if err != nil {
		w.t.Fatal(err)
	}
	if got := tool.Text(r); r.GetOutcome() != outcome || !strings.Contains(got, part) {
		w.t.Errorf("%s %.200s: got %v %.300q, want %v with %q", name, arguments, r.GetOutcome(), got, outcome, part)
	}
}

func object(t testing.TB, v map[string]any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const (
	ok      = toolsv1.CallOutcome_CALL_OUTCOME_OK
	failing = toolsv1.CallOutcome_CALL_OUTCOME_ERROR
)

// TestACommandStoppedAsItIsHandedBackIsNoOperation cancels the call in the moment
// in which the sandbox says that the command runs.
// A request that the sandbox refuses, or whose stream breaks, is repeated, and the command starts once.
func TestRead(t *testing.T) {
	w := newWorld(t)
	put := func(name, content string) { w.sandbox.Put(session, name, content) }
	put("a.txt", "one\n\tté\nthree")
	put("empty", "")
	put("long", strings.Repeat("é", 2500)+"\nnext\n")
	put("many", strings.Repeat("x\n", 2500))
	put("bin", "a\x00b")
	put("latin", "caf\xe9\n")
	put("dir/file", "x")
	picture := string(mediatest.Picture("image/png"))
	put("pic.png", picture)
	put("damaged.png", picture[:20])
	put("fake.png", "text")
	put("none.png", "")
	put("huge.png", "\x89PNG\r\n\x1a\n"+strings.Repeat("0", 4<<20))

	w.want("Read", `{"file_path":"/workspace/a.txt"}`, ok, "     1\tone\n     2\t\tté\n     3\tthree")
	w.want("Read", `{"file_path":"a.txt","offset":2,"limit":1}`, ok, "     2\t\tté\n\n[The file has more lines. Go on with offset 3.]")
	w.want("Read", `{"file_path":"a.txt","offset":0.0}`, ok, "     1\tone\n     2\t\tté\n     3\tthree")
	w.want("Read", `{"file_path":"empty"}`, ok, "Warning: the file exists but its contents are empty.")
	w.want("Read", `{"file_path":"a.txt","offset":9}`, ok, "Warning: the file exists but has fewer than 9 lines.")
	w.want("Read", `{"file_path":"long"}`, ok, "     1\t"+strings.Repeat("é", 2000)+"... [line cut]\n     2\tnext")
	w.contains("Read", `{"file_path":"many"}`, ok, "  2000\tx\n\n[The file has more lines. Go on with offset 2001.]")
	w.contains("Read", `{"file_path":"bin"}`, failing, "bin is not text but binary data, of 3 bytes; Read cannot show it. Look at it with Bash: file bin; xxd bin | head -n 20")
	w.want("Read", `{"file_path":"latin"}`, ok, "     1\tcaf\uFFFD")
	w.contains("Read", `{"file_path":"dir"}`, failing, "use LS for a directory")
	w.contains("Read", `{"file_path":"nope"}`, failing, "File does not exist: nope")
	w.contains("Read", `{"file_path":"../../etc/passwd"}`, failing, "leads outside the workspace")
	w.contains("Read", `{"file_path":"/etc/passwd"}`, failing, "leads outside the workspace")
	w.contains("Read", `{"file_path":"`+strings.Repeat("x", 5000)+`"}`, failing, "longer than 4096 bytes")
	w.contains("Read", `{"file_path":"fake.png"}`, failing, "cannot be shown as one: it is text/plain")
	w.contains("Read", `{"file_path":"damaged.png"}`, failing, "is damaged")
	w.contains("Read", `{"file_path":"none.png"}`, failing, "empty")
	w.contains("Read", `{"file_path":"huge.png"}`, failing, "larger than 3145728 bytes")

	r, err := w.run("Read", `{"file_path":"/workspace/pic.png"}`)
	if err != nil {
		t.Fatal(err)
	}
	image := r.GetContent()[0].GetImage()
	if image.GetMediaType() != "image/png" || string(image.GetData()) != picture || image.GetTitle() != "pic.png" {
		t.Errorf("got %v", r)
	}
}

func TestWrite(t *testing.T) {
	w := newWorld(t)
	w.want("Write", `{"file_path":"/workspace/d/a","content":"x"}`, ok, "File created successfully at: /workspace/d/a")
	w.want("Write", `{"file_path":"d/a","content":""}`, ok, "The file /workspace/d/a has been updated.")
	big := strings.Repeat("0123456789", 150_000)
	w.want("Write", object(t, map[string]any{"file_path": "big", "content": big}), ok, "File created successfully at: /workspace/big")
	if got, _ := w.sandbox.Get(session, "big"); got != big {
		t.Errorf("the big file has %d bytes", len(got))
	}
	w.contains("Write", `{"file_path":"../x","content":"x"}`, failing, "leads outside")
	w.sandbox.Fail(sandboxtest.Refuse(codes.ResourceExhausted, sandboxv1.ErrorReason_ERROR_REASON_WORKSPACE_FULL, "the workspace is full", nil))
	w.contains("Write", `{"file_path":"x","content":"x"}`, failing, "the workspace is full")
}

func TestEdit(t *testing.T) {
	w := newWorld(t)
	w.sandbox.Put(session, "a", "one\ntwo\ntwo\n")
	w.want("Edit", `{"file_path":"a","old_string":"one","new_string":"1"}`, ok,
		"The file /workspace/a has been updated. Here's the result of running `cat -n` on a snippet of the edited file:\n     1\t1\n     2\ttwo\n     3\ttwo")
	w.contains("Edit", `{"file_path":"a","old_string":"two","new_string":"2"}`, failing, "Found 2 matches of the string to replace, but replace_all is false")
	w.contains("Edit", `{"file_path":"a","old_string":"three","new_string":"2"}`, failing, "String to replace not found in file")
	w.want("Edit", `{"file_path":"a","old_string":"x","new_string":"x"}`, failing, "No changes to make: old_string and new_string are exactly the same.")
	w.contains("Edit", `{"file_path":"a","old_string":"two","new_string":"2","replace_all":true}`, ok, "2 replaced.")
	w.contains("Edit", `{"file_path":"a","old_string":"","new_string":"x"}`, failing, "exists and is not empty")
	w.contains("Edit", `{"file_path":"new","old_string":"","new_string":"x\n"}`, ok, "     1\tx")
	w.contains("Edit", `{"file_path":"nope","old_string":"a","new_string":"b"}`, failing, "File does not exist")
	if got, _ := w.sandbox.Get(session, "a"); got != "1\n2\n2\n" {
		t.Errorf("got %q", got)
	}
}

func TestMultiEdit(t *testing.T) {
	w := newWorld(t)
	w.sandbox.Put(session, "a", "one two")
	w.contains("MultiEdit", `{"file_path":"a","edits":[{"old_string":"one","new_string":"1"},{"old_string":"nope","new_string":"x"}]}`, failing, "Edit 2 of 2: String to replace not found")
	if got, _ := w.sandbox.Get(session, "a"); got != "one two" {
		t.Errorf("a failed edit left %q", got)
	}
	w.contains("MultiEdit", `{"file_path":"a","edits":[{"old_string":"one","new_string":"two"},{"old_string":"two","new_string":"2","replace_all":true}]}`, ok, "Edit 2 of 2: 2 replaced.")
	w.contains("MultiEdit", `{"file_path":"a","edits":[{"old_string":"x","new_string":"x"},{"old_string":"a","new_string":"b"}]}`, failing, "Edit 1 of 2: No changes to make")
	w.contains("MultiEdit", `{"file_path":"a","edits":[]}`, failing, "edits")
}

func TestAChangeOfWhichNobodyKnowsIsUnknown(t *testing.T) {
	w := newWorld(t)
	for name, arguments := range map[string]string{
		"Write":     `{"file_path":"a","content":"new"}`,
		"Edit":      `{"file_path":"a","old_string":"","new_string":"new"}`,
		"MultiEdit": `{"file_path":"a","edits":[{"old_string":"","new_string":"new"}]}`,
	} {
		w.sandbox.Fail(sandboxtest.Refuse(codes.FailedPrecondition, sandboxv1.ErrorReason_ERROR_REASON_OUTCOME_UNKNOWN, "a crash interrupted the change", nil))
		w.want(name, arguments, toolsv1.CallOutcome_CALL_OUTCOME_UNKNOWN, unknownText)
	}
}

// TestACancelledChangeIsNotMadeLater: by a process that was paused before its request,
// or by a request that the sandbox has taken.
func TestACancelledChangeIsNotMadeLater(t *testing.T) {
	for name, arguments := range map[string]string{
		"Write":     `{"file_path":"a","content":"new"}`,
		"Edit":      `{"file_path":"a","old_string":"old","new_string":"new"}`,
		"MultiEdit": `{"file_path":"a","edits":[{"old_string":"old","new_string":"new"}]}`,
		"Bash":      `{"command":"out x"}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.sandbox.Put(session, "a", "old")
			c := tool.Call{Session: session, Epoch: 1, Node: "here", ID: "c", Arguments: []byte(arguments)}
			stops, can := w.tools[name].Runner.(tool.Canceller)
			if !can {
				t.Fatal("nobody can stop it")
			}
			if err := stops.Cancel(w.ctx(), c); err != nil {
				t.Fatal(err)
			}
			got, err := w.tools[name].Runner.Run(w.ctx(), c, &sink{})
			if err != nil || got.GetOutcome() != toolsv1.CallOutcome_CALL_OUTCOME_CANCELLED {
				t.Errorf("it was made all the same: %v, %v", got, err)
			}
			if got, _ := w.sandbox.Get(session, "a"); got != "old" || w.sandbox.Starts("c") > 0 {
				t.Errorf("the file is %q", got)
			}
		})
	}
}

func TestGlob(t *testing.T) {
	w := newWorld(t)
	w.want("Glob", `{"pattern":"**/*.go"}`, ok, "No files found")
	w.sandbox.Put(session, "a.go", "")
	w.sandbox.Put(session, "src/b.go", "")
	w.want("Glob", `{"pattern":"**/*.go"}`, ok, "/workspace/a.go\n/workspace/src/b.go")
	w.want("Glob", `{"pattern":"*.go","path":"/workspace/src"}`, ok, "/workspace/src/b.go")
	w.want("Glob", `{"pattern":"/workspace/src/*.go"}`, ok, "/workspace/src/b.go")
	w.contains("Glob", `{"pattern":"../*.go","path":"src"}`, failing, "must not contain")
	w.contains("Glob", `{"pattern":"{x,..}/*.go","path":"src"}`, failing, "must not contain")
	w.contains("Glob", `{"pattern":"/etc/*"}`, failing, "must be relative")
	w.contains("Glob", `{"pattern":"[","path":"src"}`, failing, "not valid")
	w.contains("Glob", `{"pattern":"*","path":".."}`, failing, "leads outside")
}

func TestGrep(t *testing.T) {
	w := newWorld(t)
	w.sandbox.Put(session, "a.go", "one\nNeedle\nthree\nfour\nfive\nneedle\n")
	w.sandbox.Put(session, "b.md", "needle\n")
	for _, c := range []struct{ name, args, want string }{
		{"files are listed", `{"pattern":"needle"}`, "Found 2 files\n/workspace/a.go\n/workspace/b.md"},
		{"lines are shown with numbers", `{"pattern":"eedle","path":"a.go","output_mode":"content"}`, "/workspace/a.go:2:Needle\n/workspace/a.go:6:needle"},
		{"or without", `{"pattern":"eedle","path":"a.go","output_mode":"content","-n":false}`, "/workspace/a.go:Needle\n/workspace/a.go:needle"},
		{"context is told apart", `{"pattern":"eedle","path":"a.go","output_mode":"content","-B":1}`, "/workspace/a.go-1-one\n/workspace/a.go:2:Needle\n--\n/workspace/a.go-5-five\n/workspace/a.go:6:needle"},
		{"lines are counted", `{"pattern":"needle","-i":true,"output_mode":"count"}`, "/workspace/a.go:2\n/workspace/b.md:1\n\nFound 3 matching lines in 2 files."},
		{"a type chooses files", `{"pattern":"needle","type":"md"}`, "Found 1 files\n/workspace/b.md"},
		{"a glob chooses files", `{"pattern":"needle","glob":"*.go"}`, "Found 1 files\n/workspace/a.go"},
		{"both must match", `{"pattern":"needle","glob":"*.go","type":"md"}`, "No files found"},
		{"the head is limited", `{"pattern":"needle","head_limit":1}`, "Found 1 files\n/workspace/a.go\n(There is more. Use a narrower pattern, path or glob, or a higher head_limit.)"},
		{"no lines are said", `{"pattern":"nope","output_mode":"content"}`, "No matches found"},
	} {
		t.Run(c.name, func(t *testing.T) { w.want("Grep", c.args, ok, c.want) })
	}
	w.contains("Grep", `{"pattern":"("}`, failing, "not valid")
	w.contains("Grep", `{"pattern":"x","type":"cobol"}`, failing, "There is no file type cobol")
	w.contains("Grep", `{"pattern":"x","path":"/etc"}`, failing, "leads outside")
	w.contains("Grep", `{"pattern":"x","output_mode":"all"}`, failing, "output_mode")
	w.contains("Grep", `{"pattern":"a\u0000"}`, failing, "NUL")
}

func TestLS(t *testing.T) {
	w := newWorld(t)
	w.want("LS", `{}`, ok, "- /workspace/\n  (empty)")
	for _, name := range []string{"a.txt", "src/main.go", "src/deep/x.go", ".git/config", "b.log"} {
		w.sandbox.Put(session, name, "")
	}
	w.want("LS", `{"path":"/workspace","ignore":["*.log"]}`, ok,
		"- /workspace/\n  - .git/\n  - a.txt\n  - src/\n    - deep/\n      - x.go\n    - main.go")
	w.want("LS", `{"path":"src/deep"}`, ok, "- /workspace/src/deep/\n  - x.go")
	w.want("LS", `{"path":"/workspace/.git"}`, ok, "- /workspace/.git/\n  - config")
	w.contains("LS", `{"path":"a.txt"}`, failing, "is not a directory")
	w.contains("LS", `{"path":"nope"}`, failing, "Directory does not exist")
	w.contains("LS", `{"path":"/etc"}`, failing, "leads outside")
	for i := range 1200 {
		w.sandbox.Put(session, "many/"+strings.Repeat("f", i+1), "")
	}
	r, err := w.run("LS", `{"path":"many"}`)
	if err != nil || strings.Count(tool.Text(r), "\n") != lsMaxFiles+1 || !strings.HasSuffix(tool.Text(r), "Use a narrower path, or Glob.)") {
		t.Errorf("%d lines, %v", strings.Count(tool.Text(r), "\n"), err)
	}
}

func TestOutputIsCutInTheMiddle(t *testing.T) {
	for _, c := range []struct {
		name, in string
		chunk    int
		want     string
	}{
		{"a short one is whole", "hello", 2, "hello"},
		{"the longest one is whole", strings.Repeat("é", 30000), 1000, strings.Repeat("é", 30000)},
		{"one more is cut", strings.Repeat("a", 15000) + "b" + strings.Repeat("c", 15000), 77, strings.Repeat("a", 15000) + "\n\n... [1 characters cut] ...\n\n" + strings.Repeat("c", 15000)},
		{"a very long one keeps both ends", strings.Repeat("a", 15000) + strings.Repeat("b", 1_000_000) + strings.Repeat("c", 15000), 4096, strings.Repeat("a", 15000) + "\n\n... [1000000 characters cut] ...\n\n" + strings.Repeat("c", 15000)},
		{"what is no text is replaced", "a\xffb", 1, "a\uFFFDb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o output
			for in := c.in; in != ""; {
				n := min(len(in), c.chunk)
				_, _ = o.Write([]byte(in[:n]))
				in = in[n:]
			}
			if got := o.String(); got != c.want {
				t.Errorf("got %d bytes %.60q…, want %d", len(got), got, len(c.want))
			}
			if held := cap(o.head) + cap(o.tail); held > 8*sideBytes {
				t.Errorf("it holds %d bytes", held)
			}
		})
	}
}

// fuzzArguments checks that whatever a model writes, a tool answers with a
// result that can be stored and sent.
func fuzzArguments(f *testing.F, name string, seeds ...string) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, arguments string) {
		w := newWorld(t)
		w.sandbox.Put(session, "a.go", "package a\n\nfunc needle() {}\n")
		r, err := w.run(name, arguments)
		if err != nil {
			t.Fatalf("%q: %v", arguments, err)
		}
		if r.GetOutcome() != ok && r.GetOutcome() != failing {
			t.Fatalf("%q: %v", arguments, r)
		}
		for _, c := range r.GetContent() {
			if n := len(c.GetText().GetText()); n == 0 || n > 1<<20 {
				t.Fatalf("%q: a text of %d bytes", arguments, n)
			}
		}
	})
}

func FuzzEditArguments(f *testing.F) {
	fuzzArguments(f, "Edit", `{"file_path":"a.go","old_string":"needle","new_string":"pin"}`, `{"file_path":"a.go","old_string":"","new_string":"\ud800"}`, `{"file_path":"../a","old_string":"a","new_string":"b","replace_all":true}`, `{"file_path":"a","file_path":"b"}`, `[`)
}

func FuzzMultiEditArguments(f *testing.F) {
	fuzzArguments(f, "MultiEdit", `{"file_path":"a.go","edits":[{"old_string":"needle","new_string":"pin"},{"old_string":"pin","new_string":"needle"}]}`, `{"file_path":"a.go","edits":[{}]}`, `{"edits":null}`)
}

func TestGrepShowsNoLineEnds(t *testing.T) {
	w := newWorld(t)
	w.sandbox.Put(session, "crlf", "A\r\nB\r\r\nC\rD\r\n")
	w.want("Grep", `{"pattern":"A","output_mode":"content","-A":2}`, ok, "/workspace/crlf:1:A\n/workspace/crlf-2-B\r\n/workspace/crlf-3-C\rD")
	w.contains("Grep", `{"pattern":"A\\r","output_mode":"content"}`, ok, "/workspace/crlf:1:A")
}

func FuzzGrepArguments(f *testing.F) {
	fuzzArguments(f, "Grep", `{"pattern":"needle"}`, `{"pattern":"(?i)x|y","-A":1e18,"-B":3,"output_mode":"content","head_limit":0}`, `{"pattern":"[","type":"go","glob":"{a,"}`, `{"pattern":"a\u0000"}`)
}

func FuzzGlobArguments(f *testing.F) {
	fuzzArguments(f, "Glob", `{"pattern":"**/*.go"}`, `{"pattern":"/workspace/*"}`, `{"pattern":"[","path":"/"}`, `{"pattern":"{a,b}","path":"../.."}`)
}

// TestReadNamesABinary reads files that are no text, and texts that look like some.
func TestReadNamesABinary(t *testing.T) {
	w := newWorld(t)
	random := make([]byte, 600) // without NUL bytes
	for i := range random {
		random[i] = byte(1 + (i*7919+i*i*31)%255)
	}
	for name, c := range map[string]struct{ content, says string }{
		"data.bin":      {string(random), "data.bin is not text but binary data, of 600 bytes"},
		"a b'c.bin":     {string(random), `xxd 'a b'\''c.bin'`},
		"x.gz":          {"\x1f\x8b\x08\x08rest", "application/x-gzip, of 8 bytes; Read cannot show it. Look at it with Bash: zcat x.gz"},
		"x.tar.gz":      {"\x1f\x8b\x08\x08rest", "tar -tzf x.tar.gz"},
		"x.zip":         {"PK\x03\x04\x14\x00\x00\x00", "application/zip, of 8 bytes; Read cannot show it. Look at it with Bash: unzip -l x.zip"},
		"paper.pdf":     {"%PDF-1.7\n1 0 obj\n", "a PDF, of 17 bytes; Read cannot show it. Look at it with Bash: pdftotext paper.pdf"},
		"tool":          {"\x7fELF\x02\x01\x01\x00", "a program or library (ELF)"},
		"app.db":        {"SQLite format 3\x00", "sqlite3 app.db .schema"},
		"x.xz":          {"\xfd7zXZ\x00\x00\x04", "xzcat x.xz"},
		"wide.txt":      {"\xff\xfeh\x00i\x00", "wide.txt is text in UTF-16 (6 bytes)"},
		"late-nul":      {strings.Repeat("text\n", 1500) + "\x00", "late-nul is not text but binary data, of 7501 bytes"},
		"damaged-image": {"\x89PNG\r\n\x1a\n\x00\x00", "is damaged"},
	} {
		w.sandbox.Put(session, name, c.content)
		w.contains("Read", object(t, map[string]any{"file_path": name}), failing, c.says)
	}
	for name, content := range map[string]string{
		"BMW": "BMW and VW", "GIF89a": "GIF89a is a format", "MZ": "MZ is a prefix", "PK": "PK\n", "latin1": "\xfcber \xe4lter\n", "sjis": "\x93\xfa\x96{\x8c\xea\n",
		"ansi": "\x1b[31mred\x1b[0m", "wide": strings.Repeat("é", 3000), "ID3": "ID3 tags",
	} {
		w.sandbox.Put(session, name, content)
		w.contains("Read", object(t, map[string]any{"file_path": name}), ok, "     1\t")
	}
	w.sandbox.Put(session, "picture", string(mediatest.Picture("image/png")))
	r, err := w.run("Read", `{"file_path":"picture"}`)
	if err != nil || r.GetContent()[0].GetImage().GetMediaType() != "image/png" {
		t.Errorf("a picture without an ending: %v, %v", r, err)
	}
}

func TestGrepSaysWhatWasCutOfALine(t *testing.T) {
	var b strings.Builder
	grepParams{}.showLines(&b, []*sandboxv1.GrepMatch{
		{Path: "a", Line: 1, Text: []byte("one needle two"), CutBefore: 14_000, CutAfter: 16_000},
		{Path: "a", Line: 2, Text: []byte("needle")},
	})
	if got, want := b.String(), "/workspace/a:1:[14000 bytes cut] ... one needle two ... [16000 bytes cut]\n/workspace/a:2:needle\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
