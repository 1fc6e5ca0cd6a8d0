package box

import "context"

// closely is a watch for a command that moves its files, while they are counted, to where that
// is done already. It looks again with everything stopped, if the runner can do that, each time
// the file system has lost half as much room as the workspace may take, whoever took it.
func (s *session) closely(ctx context.Context, w watch) watch {
	ctx = context.WithoutCancel(ctx) // whoever started the command may be gone
	since, known := roomAt(s.dir)
	return func(l Limits, quick bool, h nameless) (limit, why string) {
		if limit, why = w(l, quick, h); limit != "" || quick || !known {
			return limit, why
		}
		now, ok := roomAt(s.dir)
		if !ok || since.bytes-now.bytes < l.WorkspaceBytes/2 && since.inodes-now.inodes < l.WorkspaceInodes/2 {
			return "", ""
		}
		since = now
		frozen, thaw, err := s.node.o.Runner.Freeze(ctx, s.path("workspace"))
		if err != nil {
			s.node.o.Log.Error("cannot stop commands to count a workspace", "error", err)
		}
		defer thaw()
		if !frozen {
			return "", ""
		}
		return w(l, quick, h)
	}
}
