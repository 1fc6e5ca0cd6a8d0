package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/internal/kit/apierr"
)

// said is what an RPC came to: the reason of its error, or what it brought.
func said(brought string, err error) string {
	if err == nil {
		return brought
	}
	if reason := apierr.Reason(err); reason != "" {
		return reason
	}
	return status.Code(err).String()
}

// reading has a command leave something in the workspace, and the service read a
// path.
func reading(script, path string) func(t *testing.T, s *scene) string {
	return prepared(script, func(ctx context.Context, t *testing.T, s *scene) string {
		stream, err := s.files.ReadFile(ctx, &sandboxv1.ReadFileRequest{Session: s.session, Path: s.host.fill(path)})
		if err != nil {
			return said("", err)
		}
		m, err := stream.Recv()
		return said(string(m.GetData()), err)
	})
}

// prepared runs a script, and then something that must not take long.
func prepared(script string, then func(ctx context.Context, t *testing.T, s *scene) string) func(t *testing.T, s *scene) string {
	return func(t *testing.T, s *scene) string {
		s.bash(t, "mkdir -p trap && cd trap && rm -rf ./* && "+s.host.fill(script))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return then(ctx, t, s)
	}
}

// writing has a command leave something, and the service write to a path.
func writing(script, path string) func(t *testing.T, s *scene) string {
	return prepared(script, func(_ context.Context, t *testing.T, s *scene) string {
		_, err := s.write(t, s.host.fill(path), "evil", nil) //nolint:contextcheck // the test's is above it
		return said("written", err)
	})
}

// found are the paths that a search brought.
func found(all []*sandboxv1.FileInfo) string {
	var b strings.Builder
	for _, f := range all {
		b.WriteString(f.GetPath() + " ")
	}
	return strings.TrimSpace(b.String())
}

func globbing(script, pattern string) func(t *testing.T, s *scene) string {
	return prepared(script, func(ctx context.Context, _ *testing.T, s *scene) string {
		r, err := s.files.GlobFiles(ctx, &sandboxv1.GlobFilesRequest{Session: s.session, Pattern: s.host.fill(pattern)})
		return said(found(r.GetFiles()), err)
	})
}

func grepping(script, folder, pattern string) func(t *testing.T, s *scene) string {
	return prepared(script, func(ctx context.Context, _ *testing.T, s *scene) string {
		stream, err := s.files.GrepFiles(ctx, &sandboxv1.GrepFilesRequest{Session: s.session, Pattern: pattern, Path: folder})
		n := 0
		for err == nil {
			var m *sandboxv1.GrepFilesResponse
			if m, err = stream.Recv(); len(m.GetMatches()) > 0 {
				n += len(m.GetMatches())
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return said(fmt.Sprintf("%d found", n), err)
	})
}

// rpcAttacks leave something in the workspace that is to lead the service, which
// looks at it from outside, astray.
var rpcAttacks = []attack{
	{name: "reading by a path that goes up", run: reading("true", "../../../../../../../..{secret}"), want: "PATH_ESCAPES"},
	{name: "reading by an absolute path", run: reading("true", "{secret}"), want: "PATH_ESCAPES"},
	{name: "reading the neighbor's file", run: reading("true", "../../neighbor/workspace/secret"), want: "PATH_ESCAPES"},
	{name: "reading by a link to a file", run: reading("ln -s {secret} link", "trap/link"), want: "PATH_ESCAPES"},
	{name: "reading by a link to a folder", run: reading("ln -s / root", "trap/root{secret}"), want: "PATH_ESCAPES"},
	{name: "reading by a link that goes up", run: reading("ln -s ../../../../../../../../.. up", "trap/up{secret}"), want: "PATH_ESCAPES"},
	{name: "reading by a chain of links", run: reading("ln -s b a; ln -s c b; ln -s {secret} c", "trap/a"), want: "PATH_ESCAPES"},
	{name: "reading by links that go round", run: reading("ln -s b a; ln -s a b", "trap/a"), want: "PATH_ESCAPES|WRONG_FILE_TYPE"},
	{name: "reading by the links of /proc", run: reading("ln -s /proc/self/root p", "trap/p{secret}"), want: "PATH_ESCAPES"},
	{name: "reading the service's own environment", run: reading("ln -s /proc/self/environ e", "trap/e"), want: "PATH_ESCAPES"},
	{name: "reading a pipe without a writer", run: reading("mkfifo pipe", "trap/pipe"), want: "WRONG_FILE_TYPE", unlike: map[string]string{gVisor: "FILE_NOT_FOUND"}},
	{name: "reading a socket", run: reading("python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"s\")' 2>/dev/null || mkfifo s", "trap/s"), want: "WRONG_FILE_TYPE", unlike: map[string]string{gVisor: "FILE_NOT_FOUND"}},
	{name: "a name that ends early", run: reading("true", "trap/a\x00b"), want: "BAD_PATH"},
	{name: "a name without end", run: reading("true", strings.Repeat("a/", 2000)+"b"), want: "PATH_ESCAPES|FILE_NOT_FOUND"},
	{name: "writing by a path that goes up", run: writing("true", "../../../../../../../..{secret}"), want: "PATH_ESCAPES"},
	{name: "writing by a link to a file", run: writing("ln -s {secret} link", "trap/link"), want: "PATH_ESCAPES"},
	{name: "writing by a link to a folder", run: writing("ln -s / root", "trap/root{secret}"), want: "PATH_ESCAPES"},
	{name: "writing by a link to what is not there", run: writing("ln -s {secret}.new link", "trap/link"), want: "PATH_ESCAPES"},
	{name: "writing to a pipe without a reader", run: writing("mkfifo pipe", "trap/pipe"), want: "WRONG_FILE_TYPE", unlike: map[string]string{gVisor: "written"}},
	{name: "editing by a link", run: prepared("ln -s {secret} link", func(ctx context.Context, _ *testing.T, s *scene) string {
		_, err := s.files.EditFile(ctx, &sandboxv1.EditFileRequest{Call: s.call(), Path: "trap/link", Edits: []*sandboxv1.Edit{{OldText: "secret", NewText: "evil"}}})
		return said("edited", err)
	}), want: "PATH_ESCAPES"},
	{name: "deleting through a link", run: prepared("ln -s / root", func(ctx context.Context, _ *testing.T, s *scene) string {
		_, err := s.files.DeleteFile(ctx, &sandboxv1.DeleteFileRequest{Call: s.call(), Path: "trap/root" + s.host.secret})
		return said("deleted", err)
	}), want: "PATH_ESCAPES"},
	{name: "deleting a folder that holds links to outside", run: prepared("mkdir d; ln -s / d/root; ln -s {secret} d/link", func(ctx context.Context, _ *testing.T, s *scene) string {
		_, err := s.files.DeleteFile(ctx, &sandboxv1.DeleteFileRequest{Call: s.call(), Path: "trap/d", Recursive: true})
		return said("deleted", err)
	}), want: "deleted"},
	{name: "moving through a link", run: prepared("ln -s / root; echo x > x", func(ctx context.Context, _ *testing.T, s *scene) string {
		_, in := s.files.MoveFile(ctx, &sandboxv1.MoveFileRequest{Call: s.call(), Path: "trap/root" + s.host.secret, NewPath: "trap/mine"})
		_, out := s.files.MoveFile(ctx, &sandboxv1.MoveFileRequest{Call: s.call(), Path: "trap/x", NewPath: "trap/root" + s.host.secret})
		return said("moved", in) + " " + said("moved", out)
	}), want: "PATH_ESCAPES PATH_ESCAPES"},
	{name: "listing through a link", run: prepared("ln -s / root", func(ctx context.Context, _ *testing.T, s *scene) string {
		r, err := s.files.ListFiles(ctx, &sandboxv1.ListFilesRequest{Session: s.session, Path: "trap/root/etc"})
		return said(found(r.GetFiles()), err)
	}), want: "PATH_ESCAPES"},
	{name: "watching through a link", run: prepared("ln -s / root", func(ctx context.Context, _ *testing.T, s *scene) string {
		stream, err := s.files.WatchFiles(ctx, &sandboxv1.WatchFilesRequest{Session: s.session, Path: "trap/root/tmp"})
		if err == nil {
			_, err = stream.Recv()
		}
		return said("watched", err)
	}), want: "PATH_ESCAPES"},
	{name: "finding by a pattern that goes through a link", run: globbing("ln -s / root; touch real", "trap/**"), want: "trap/real trap/root|trap/root trap/real"},
	{name: "finding by a pattern that goes up", run: globbing("true", "../../*/workspace/*"), want: "PATH_ESCAPES|BAD_PATTERN|"},
	{name: "finding by a pattern that takes for ever", run: globbing("touch "+strings.Repeat("a", 200), "trap/"+strings.Repeat("*a", 60)+"b"), want: "|BAD_PATTERN"},
	{name: "searching through links", run: grepping("ln -s {secret} link; ln -s / root", "trap", "secret"), want: "0 found"},
	{name: "searching through a pipe", run: grepping("mkfifo pipe; echo needle > hay", "trap", "needle"), want: "1 found"},
	{name: "searching by a pattern that takes for ever", run: grepping("head -c 100000 /dev/zero | tr '\\\\0' a > aaa", "trap", "(a*)*b"), want: "0 found"},
	{name: "a name that is not text, in every listing", run: prepared("touch $'bad\\xff\\nname'", func(ctx context.Context, _ *testing.T, s *scene) string {
		_, list := s.files.ListFiles(ctx, &sandboxv1.ListFilesRequest{Session: s.session, Path: "trap"})
		_, glob := s.files.GlobFiles(ctx, &sandboxv1.GlobFilesRequest{Session: s.session, Pattern: "trap/*"})
		return said("listed", list) + " " + said("found", glob)
	}), want: "listed found"},
	{name: "commands for a terminal in an error", run: prepared("true", func(ctx context.Context, t *testing.T, s *scene) string {
		_, err := s.read(t, "trap/\x1b]0;evil\x07\x1b[2J")
		r, fault := s.exec(ctx, "", func(x *sandboxv1.ExecStart) { x.Argv = []string{"\x1b]0;evil\x07"} })
		if text := apierr.Message(err) + r.GetMessage() + fmt.Sprint(fault); strings.ContainsAny(text, "\x1b\x07") {
			return fmt.Sprintf("%q", text)
		}
		return "plain text"
	}), want: "plain text"},
	{name: "keeping the service from reading and removing what is there", run: prepared("mkdir -p shut/in; echo x > shut/in/f; chmod 000 shut/in/f shut/in shut", func(ctx context.Context, _ *testing.T, s *scene) string {
		_, err := s.files.DeleteFile(ctx, &sandboxv1.DeleteFileRequest{Call: s.call(), Path: "trap/shut", Recursive: true})
		return said("deleted", err)
	}), want: "deleted"},
}
