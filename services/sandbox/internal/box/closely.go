package box

import "context"

// closely returns a watch for a command that moves its files while w counts them, once w has counted. Each
// time the file system has lost half the room that the workspace may take, the watch freezes all processes
// and counts again, if the runner can freeze them. It does not matter which session took the room.
func (s *session) closely(ctx context.Context, w watch) watch {
	ctx = context.WithoutCancel(ctx) // the caller of the command may be gone
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
