package pool

import "time"

// stay tells what keeps a sandbox, and for how long it is kept without that. The runner's mu guards it.
type stay struct {
	users    int         // commands, and other reasons to keep it
	commands int         // commands only
	since    time.Time   // when the last of them left
	timer    *time.Timer // ends the sandbox after its idle time
}

// enter adds a user.
func (s *stay) enter(command bool) {
	s.users++
	if command {
		s.commands++
	}
	s.stopTimer()
}

// leave removes a user.
func (s *stay) leave(command bool) {
	s.users--
	if command {
		s.commands--
	}
}

// startTimer calls over once the sandbox has been idle for long enough, unless it has a user before.
func (s *stay) startTimer(idle time.Duration, over func()) {
	if s.timer == nil {
		s.timer = time.AfterFunc(idle, over)
		return
	}
	s.timer.Reset(idle)
}

func (s *stay) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
