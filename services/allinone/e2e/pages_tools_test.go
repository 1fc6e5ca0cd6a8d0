package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The server that the page on tools names, and the command that stands for a package of npm, which needs a network.
const (
	pageWiki   = "https://wiki.example.com/mcp"
	pageIssues = "https://issues.internal/mcp"
	pageFiles  = "npx -y @modelcontextprotocol/server-filesystem /workspace"
	localFiles = "python3 server.py"
)

func startWiki(t *testing.T) *wikiServer {
	t.Helper()
	w := &wikiServer{}
	w.start(t)
	t.Cleanup(w.stop)
	return w
}

// called reports whether a server was called with a header Authorization.
func (w *wikiServer) called(authorization string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.keys, authorization)
}

// withServer makes a session of an agent whose workspace has the command of an MCP server.
func (s *system) withServer(t *testing.T, agent string) string {
	t.Helper()
	program, err := os.ReadFile(filepath.Join("testdata", "mcpserver.py"))
	if err != nil {
		t.Fatal(err)
	}
	session := s.session(t, agent)
	if r := s.call(t, http.MethodPut, "/v1/"+session+"/files/server.py", string(program), "Content-Type", "application/octet-stream"); r.code != http.StatusCreated {
		t.Fatalf("write the server: %d %s", r.code, r.body)
	}
	return session
}

// reads runs a turn and checks what the model reads of its calls.
func (s *system) reads(t *testing.T, session, text string, wants ...string) []frame {
	t.Helper()
	frames := s.turn(t, session, text)
	last(t, frames, "COMPLETE")
	prints(t, strings.Join(results(frames), "\n"), wants...)
	return frames
}

func TestTheExamplesOfThePageOnTools(t *testing.T) {
	t.Parallel()
	wiki, p := startWiki(t), readPage(t, "tools.md")
	at := []string{pageWiki, "http://" + wiki.address, pageFiles, localFiles}
	agents := section(t, p.block(t, "yaml", "files:"), []string{"session", "agents"}, pageWiki, "http://"+wiki.address,
		"command: npx", "command: python3", `[-y, "@modelcontextprotocol/server-filesystem", /workspace]`, "[server.py]")
	s := start(t, options{
		scenario: filepath.Join("testdata", "pages.yaml"), tools: "mcp-allow-private: [127.0.0.0/8]",
		agents: indent(agents) + "  plain: {profile: full, prompt: p, tools: [Read]}\n",
	})
	sh := newShell(t, s)
	sh.file(t, ".mcp.json", p.block(t, "json", "mcpServers"))
	wants(t, s.call(t, http.MethodPut, "/v1/users/me/variables/WIKI_TOKEN", `{"value":"hush-hush"}`), http.StatusOK, "")

	session := s.withServer(t, "clerk")
	s.reads(t, session, "ask both", "mcp__wiki__lookup OK", "thirty days", "mcp__files__shout OK", "HELLO")
	if !wiki.called("Bearer hush-hush") {
		t.Error("the wiki was called without the user's variable")
	}
	prints(t, sh.run(t, p.next(t, "fairlead mcp status"), "SESSION", session), "wiki", "files", "connected")
	prints(t, s.call(t, http.MethodGet, strings.ReplaceAll(strings.TrimPrefix(p.quoted(t, "GET /v1/sessions/{session}/mcp"), "GET "), "sessions/{session}", session), "").body, "MCP_SERVER_STATE_CONNECTED")

	prints(t, sh.run(t, p.next(t, "curl"), at...), `"name":"users/`, "/mcpServers/wiki")
	s.reads(t, s.session(t, "plain"), "ask the wiki", "mcp__wiki__lookup OK", "thirty days")
	prints(t, sh.run(t, p.next(t, "fairlead mcp add wiki"), at...), "wiki is one of your MCP servers")
	prints(t, sh.run(t, p.next(t, "fairlead mcp add files"), at...), "files is one of your MCP servers")
	list := p.next(t, "fairlead mcp list")
	prints(t, sh.run(t, list), "wiki", wiki.address, "files", localFiles)
	s.reads(t, s.withServer(t, "plain"), "ask both", "mcp__wiki__lookup OK", "mcp__files__shout OK")
	sh.run(t, p.next(t, "fairlead mcp remove files"))
	if got := sh.run(t, list); strings.Contains(got, "files") {
		t.Errorf("after the removal there is %s", got)
	}

	sh.run(t, "fairlead mcp remove wiki")
	sh.file(t, ".mcp.json", strings.ReplaceAll(p.block(t, "json", "mcpServers"), pageWiki, "http://"+wiki.address))
	prints(t, sh.run(t, p.next(t, "fairlead run --mcp-config")), "mcp__wiki__lookup", "thirty days")
	prints(t, sh.run(t, list), "SERVER")
	prints(t, sh.run(t, p.next(t, "fairlead mcp import")), "wiki is one of your MCP servers")
	s.reads(t, s.session(t, "plain"), "ask the wiki", "thirty days")
	p.done(t, "fairlead mcp login", "fairlead mcp logout") // TestAUserLogsIn of the tools service
}

func TestTheServersOfTheOperatorOnThePageOnTools(t *testing.T) {
	t.Parallel()
	wiki, p := startWiki(t), readPage(t, "tools.md")
	example := p.block(t, "yaml", pageIssues)
	s := start(t, options{
		scenario: filepath.Join("testdata", "pages.yaml"), tools: section(t, example, []string{"tools"}, pageIssues, "http://"+wiki.address),
		agents: indent(section(t, example, []string{"session", "agents"})),
	})
	s.reads(t, s.session(t, "clerk"), "ask about issues", "mcp__issues__lookup OK", "thirty days")
	if !wiki.called("Bearer abc") {
		t.Error("the server was called without its header")
	}
}

func TestTheExamplesOfThePageOnSubagents(t *testing.T) {
	t.Parallel()
	p := readPage(t, "subagents.md")
	s := start(t, options{scenario: filepath.Join("testdata", "pages.yaml"), agents: indent(section(t, p.block(t, "yaml", "subagents:"), []string{"session", "agents"}))})
	out := newShell(t, s).run(t, p.next(t, "fairlead run"), "--config fairlead.yaml ", "") // the server has this configuration
	prints(t, out, "the finder: it is read in main.go", "the helper: it is tested")
	p.done(t)
	session := "sessions/" + strings.TrimPrefix(strings.Fields(out[strings.Index(out, "sessions/"):])[0], "sessions/")
	list := s.call(t, http.MethodGet, strings.ReplaceAll(strings.TrimPrefix(p.quoted(t, "GET /v1/sessions?parent="), "GET "), "sessions/{session}", session), "").body
	if strings.Count(list, `"parentCall"`) != 2 {
		t.Errorf("the subagents are %s", list)
	}
	frames := s.whole(t, session)
	if count(frames, "subagent.started") != 2 || count(frames, "subagent.finished") != 2 || count(frames, "subagent.event") == 0 {
		t.Errorf("the log is %s", events(frames))
	}
	narrowed := made(t, s.call(t, http.MethodPost, "/v1/sessions", `{"agent":"lead","permissions":{"deny":["Task(help*)"]}}`))
	s.reads(t, narrowed, "Where is the configuration read, and is it tested?", "Task OK", "it is read in main.go", "Task DENIED", "deny Task(help*), a rule of the agent or the session")
}

func TestTheExamplesOfThePageOnSkills(t *testing.T) {
	t.Parallel()
	p := readPage(t, "skills.md")
	s := start(t, options{
		scenario: filepath.Join("testdata", "pages.yaml"), files: "file://" + t.TempDir(),
		agents: indent(section(t, p.block(t, "yaml", "skills:"), []string{"session", "agents"})),
	})
	sh := newShell(t, s)
	manifest := p.block(t, "", "name: pdf-forms")
	sh.file(t, "pdf-forms/SKILL.md", manifest)
	sh.file(t, "pdf-forms/scripts/fill.sh", "#!/bin/sh\necho \"filled $1 with $2\"\n")
	sh.file(t, "tables/SKILL.md", strings.Replace(manifest, "pdf-forms", "tables", 1))
	sh.run(t, p.next(t, "bin/fairlead skills add"))
	prints(t, sh.run(t, p.next(t, "bin/fairlead skills add")), "version 2")
	for range 3 {
		sh.run(t, "fairlead skills add ./tables")
	}
	used := func(session string) {
		t.Helper()
		frames := s.reads(t, session, "fill the form in", "Skill OK", "/skills/pdf-forms", "Run scripts/fill.sh FORM VALUES.", "Bash OK", "filled form.pdf with values")
		if count(frames, "skill.used") != 1 {
			t.Errorf("the log is %s", events(frames))
		}
	}
	used(s.session(t, "clerk"))
	posted := func(path string) string {
		t.Helper()
		for line := range strings.Lines(p.text) {
			if rest, ok := strings.CutPrefix(line, "POST "+path+" "); ok {
				return rest[strings.Index(rest, "{") : strings.LastIndex(rest, "}")+1]
			}
		}
		t.Fatalf("the page has no POST %s", path)
		return ""
	}
	sh.run(t, p.next(t, "bin/fairlead skills list"))
	sh.run(t, p.next(t, "bin/fairlead skills versions"))
	r := s.call(t, http.MethodPost, "/v1/sessions", posted("/v1/sessions"))
	used(made(t, r))
	sh.run(t, p.next(t, "bin/fairlead skills remove"))
	file := s.upload(t, skillZip(t, map[string]string{"SKILL.md": manifest, "scripts/fill.sh": "#!/bin/sh\necho \"filled $1 with $2\"\n"}))
	wants(t, s.call(t, http.MethodPost, "/v1/skills", strings.Replace(posted("/v1/skills"), "files/…", file, 1)), http.StatusOK, fmt.Sprintf(`"version":%d`, 1))
	used(s.session(t, "clerk"))
	p.done(t)
}
