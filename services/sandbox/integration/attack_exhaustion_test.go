package integration

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
	"github.com/fairlead/fairlead/services/sandbox"
	"github.com/fairlead/fairlead/services/sandbox/internal/smalldisk"
)

// limited gives a command less than its sandbox has.
func limited(memory int64, timeout float64) func(*sandboxv1.ExecStart) {
	return func(x *sandboxv1.ExecStart) {
		x.Limits, x.Timeout = &sandboxv1.ExecLimits{MemoryBytes: memory}, seconds(timeout)
	}
}

// within bounds the time of a command, in seconds.
func within(timeout float64) func(*sandboxv1.ExecStart) {
	return func(x *sandboxv1.ExecStart) { x.Timeout = seconds(timeout) }
}

// afterwards makes an attack, and says what the next command finds.
func afterwards(script, next string) func(t *testing.T, s *scene) string {
	return func(t *testing.T, s *scene) string {
		shell(script, within(5))(t, s)
		return shell(next)(t, s)
	}
}

// cleaned makes an attack and then room again, for the attacks that come later.
func cleaned(run func(t *testing.T, s *scene) string) func(t *testing.T, s *scene) string {
	return func(t *testing.T, s *scene) string {
		outcome := run(t, s)
		s.bash(t, "cd /workspace; find . -mindepth 1 -maxdepth 1 ! -name attacker -exec rm -rf {} +; rm -rf ~/* /tmp/* /dev/shm/* 2>/dev/null")
		return outcome
	}
}

// besieged has the attacker run a script, which prints a line when it is at it, and
// says what the neighbor's command comes to meanwhile.
func besieged(script string, change func(*sandboxv1.ExecStart)) func(t *testing.T, s *scene) string {
	return func(t *testing.T, s *scene) string {
		outcome, _ := s.siege(t, script, s.neighbor, "echo fine", change)
		return outcome
	}
}

// beside has the attacker run a script, as besieged does, and says what another command of the
// attacker's own comes to meanwhile, and how the script ended.
func beside(script, next string) func(t *testing.T, s *scene) string {
	return func(t *testing.T, s *scene) string {
		outcome, end := s.siege(t, script, s.client, next, nil)
		return outcome + "; " + end
	}
}

func (s *scene) siege(t *testing.T, script string, who *client, next string, change func(*sandboxv1.ExecStart)) (outcome, end string) {
	start := &sandboxv1.ExecStart{Call: s.call(), Argv: []string{"bash", "-c", script}, Timeout: seconds(60)}
	stream := s.launch(t.Context(), t, start)
	for {
		m, err := stream.Recv()
		if err != nil || m.GetExited() != nil {
			return fmt.Sprintf("the attack did not begin: %v %v", m, err), ""
		}
		if m.GetStdout() != nil {
			break
		}
	}
	begun := time.Now()
	r, err := who.exec(t.Context(), next, change)
	outcome = fmt.Sprintf("%s %s %s", strings.TrimSpace(r.out), r.end(), r.GetMessage())
	if took := time.Since(begun); err != nil || took > 30*time.Second { // long before the attack ends by itself
		outcome = fmt.Sprintf("%v after %v", err, took)
	}
	if _, err := s.execs.CancelExec(t.Context(), &sandboxv1.CancelExecRequest{Call: start.GetCall()}); err != nil {
		t.Error(err)
	}
	attack, err := follow(stream)
	if err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	return strings.TrimSpace(outcome), attack.end()
}

// onMemory is an attack on memory, by a script that is given how much to take, in megabytes, and for how many seconds.
// At level basic nothing limits the memory of several processes together, so there it takes little.
func onMemory(script string) func(t *testing.T, s *scene) string {
	return func(t *testing.T, s *scene) string {
		have, take := int64(64<<20), "take=100; last=90"
		if s.driver.level == sandbox.LevelBasic {
			have, take = 1600<<20, "take=200; last=1"
		}
		return shell(take+"; ("+script+") 2>&1", limited(have, 90))(t, s)
	}
}

// lessThanItMayHave is less than the two gigabytes that commands may have there, of which buffers are no part: only the
// number of open files bounds them.
const lessThanItMayHave = `\d{1,3} MiB`

// reserving is how a program ends that reserves its address space, where no memory beyond the limit can be had: of
// some sandboxes that is not theirs to give.
const reserving = ".*killed|.*failed to reserve.*"

// unlimited is how a program ends that takes memory which nothing limits.
const unlimited = "never refused"

// openDeleted has a shell hold deleted files, and what it executes.
const openDeleted = "for i in $(seq 48); do exec {fd}>f; rm f; head -c 4000000 /dev/urandom >&$fd; done; "

// keptBy has programs keep deleted files, one after the other.
func keptBy(program string) string {
	return "for n in $(seq 16); do (for i in $(seq 3); do exec {fd}>f$n; rm f$n; head -c 4000000 /dev/urandom >&$fd; done; exec " + program + ") & sleep 0.1; done; wait"
}

// A disk that attacks fill quickly: what must stay free of it, and how large it is. An attack takes 192 MB.
const (
	floor     = 160 << 20
	smallDisk = "size=256m"
)

// ended is how an attack ends that takes the node's disk: the neighbor goes on, and the node takes new work.
const ended = "WORKSPACE_LIMIT disk; unharmed; fine"

// onASmallDisk makes an attack in a service of its own on a small disk. It says which limit ended the attack, what
// came of a command of a neighbor that ran meanwhile, and of the next one.
func onASmallDisk(run func(t *testing.T, s *scene) result) func(t *testing.T, s *scene) string {
	return func(t *testing.T, s *scene) string {
		disk := smalldisk.New(t, smallDisk)
		d := s.driver
		if d.again != nil {
			d = d.again(t)
		}
		change := d.open
		d.open = func(c *sandbox.Config) {
			if change != nil {
				change(c)
			}
			c.Data, c.Disk.FreeBytes = filepath.Join(disk, "data"), floor
		}
		own := *s
		own.client = d.start(t, attacked)
		defer own.stop()
		program, err := os.ReadFile(attacker(t))
		if err == nil {
			_, err = own.write(t, "attacker", string(program), func(w *sandboxv1.WriteFileStart) { w.Mode = 0o755 })
		}
		if err != nil {
			t.Fatal(err)
		}
		neighbor := *own.client
		neighbor.session = "sessions/neighbor"
		neighbor.ensure(t.Context(), t)
		works := neighbor.launch(t.Context(), t, &sandboxv1.ExecStart{Call: neighbor.call(), Argv: []string{"bash", "-c", "echo ready; read; echo unharmed"}, Stdin: true})
		if _, err := works.Recv(); err != nil {
			t.Fatal(err)
		}
		r := run(t, &own)
		if hit := r.GetLimitsHit(); len(hit) > 0 && !strings.Contains(hit[0].GetMessage(), "`disk.free-bytes`") {
			t.Errorf("the message: %q", hit[0].GetMessage())
		}
		next, err := neighbor.exec(t.Context(), "echo fine", nil)
		for end := time.Now().Add(20 * time.Second); status.Code(err) == codes.ResourceExhausted && time.Now().Before(end); {
			<-time.After(20 * time.Millisecond)
			next, err = neighbor.exec(t.Context(), "echo fine", nil)
		}
		if err != nil {
			t.Error(err)
		}
		send(t, works, &sandboxv1.ExecRequest{Kind: &sandboxv1.ExecRequest_Stdin{Stdin: &sandboxv1.ExecStdin{Data: []byte("\n")}}})
		worked, err := follow(works)
		if err != nil {
			t.Error(err)
		}
		return strings.Join([]string{strings.TrimSpace(r.end() + " " + r.hits()), strings.TrimSpace(worked.out + worked.end()), strings.TrimSpace(next.out)}, "; ")
	}
}

// filling fills the disk by a script.
func filling(script string) func(t *testing.T, s *scene) string {
	return onASmallDisk(func(t *testing.T, s *scene) result {
		r, err := s.exec(t.Context(), script, within(25))
		if err != nil {
			t.Fatal(err)
		}
		if r.GetReason() == sandboxv1.ExitReason_EXIT_REASON_EXITED {
			t.Logf("it printed %q %q", r.out, r.err)
		}
		return r
	})
}

// exhaustionAttacks want more than their share.
var exhaustionAttacks = []attack{
	{name: "more processes than it may have", run: program("fork 200"), want: "refused: EAGAIN"},
	{name: "a fork bomb, and its end", run: afterwards("b() { b | b & }; b; sleep 1", "ls -d /proc/[0-9]* | wc -l"), want: "[2-6]"},
	{name: "a fork bomb beside a neighbor", run: besieged("echo on; b() { b | b & }; b 2>/dev/null; sleep 50", nil), want: "fine"},
	{name: "zombies", run: program("zombies 200"), want: "refused: EAGAIN"},
	{name: "descriptors", run: program("descriptors 10000"), want: "EMFILE"},
	{name: "open files that are under way in a socket", run: program("in-flight 100000"), want: "ETOOMANYREFS", unlike: map[string]string{gVisor: "OUT_OF_MEMORY"}},
	{name: "open files that are under way, beside another command", run: beside("exec ./attacker hold-in-flight 10000 50", "sleep 0.1; echo fine"), want: "fine; CANCELLED"},
	{name: "memory", run: shell("(head -c 300M /dev/zero | tail -c 300M >/dev/null) 2>&1", limited(64<<20, 20)), want: ".*Killed.*OUT_OF_MEMORY", unlike: map[string]string{sandbox.LevelBasic: "tail: memory exhausted", gVisor: "tail: memory exhausted", inPods: "tail: memory exhausted"}},
	{
		name: "memory of many processes",
		run:  onMemory("for i in $(seq 8); do ./attacker eat $((take/8)) $last >/dev/null & all=\"$all $!\"; done; wait -n || killed=killed; kill $all 2>/dev/null; echo ${killed:-never refused}"),
		want: ".*killed|OUT_OF_MEMORY", unlike: map[string]string{sandbox.LevelBasic: unlimited, gVisor: reserving, inPods: reserving},
	},
	{name: "memory in files without a name", run: onMemory("exec ./attacker memfd $((take/8)) $last"), want: "OUT_OF_MEMORY", unlike: map[string]string{sandbox.LevelBasic: unlimited, gVisor: reserving, inPods: reserving}},
	{name: "memory in shared segments", run: onMemory("exec ./attacker shared-memory $take $last"), want: "OUT_OF_MEMORY", unlike: map[string]string{sandbox.LevelBasic: unlimited, gVisor: reserving, inPods: reserving}},
	{name: "shared segments that outlive their command", run: afterwards("./attacker shared-memory 20; ./attacker semaphores 100", "ipcs -ms | grep -c 0x"), want: "0"},
	{name: "message queues that outlive their command", run: afterwards("./attacker message-queue", "./attacker find-message-queue"), want: "ENOSYS"},
	{name: "unreadable shared segments that outlive their command", run: afterwards("ipcmk -M 1000000 -p 0; ipcmk -S 4 -p 0; ipcmk -Q -p 0", "ipcs -qms | grep -c 0x"), want: "0"},
	{name: "the machine's huge pages", run: program("huge-pages-mapped"), want: "ENOMEM"},
	{name: "the machine's huge pages, in a file without a name", run: program("huge-pages-in-a-file"), want: "ENOMEM"},
	{name: "memory in pipes", run: program("pipes 200"), want: "EMFILE"},
	{name: "memory in semaphores", run: onMemory("exec ./attacker semaphores $((take/2)) $last"), want: "OUT_OF_MEMORY|ENOMEM|ENOSPC", unlike: map[string]string{sandbox.LevelBasic: unlimited, gVisor: reserving, inPods: reserving}},
	{name: "memory in buffers of sockets", run: func(t *testing.T, s *scene) string {
		var megabytes int
		fill := program("loopback-buffers 100")
		if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil && s.driver.level == sandbox.LevelFull {
			// Version 2 of control groups counts them as memory, and has no bound of their own.
			fill = shell("exec ./attacker loopback-buffers 100 2>&1", limited(100<<20, 20))
		}
		out := fill(t, s)
		if _, err := fmt.Sscanf(out, "%d MiB", &megabytes); err != nil || megabytes > 128 {
			return out
		}
		return "less than 128 MiB"
	}, want: "less than 128 MiB|OUT_OF_MEMORY", unlike: map[string]string{sandbox.LevelBasic: lessThanItMayHave, gVisor: lessThanItMayHave, inPods: lessThanItMayHave}},
	{name: "filling /tmp", run: shell("(head -c 5000000 /dev/zero > /tmp/x) 2>&1; rm -f /tmp/x"), want: ".*No space left on device"},
	{name: "filling /dev/shm", run: shell("(head -c 5000000 /dev/zero > /dev/shm/x) 2>&1; rm -f /dev/shm/x"), want: ".*No space left on device"},
	{name: "filling the disk", run: cleaned(shell("for i in $(seq 50); do head -c 4000000 /dev/urandom > f$i; done; sleep 20")), want: "WORKSPACE_LIMIT"},
	{name: "filling the disk with room that is reserved", run: cleaned(program("reserve 16")), want: "ENOTSUP"},
	{name: "filling the disk with room that each byte takes", run: cleaned(program("extent-size")), want: "ENOTSUP, ENOSYS"},
	{name: "filling the disk from the home", run: cleaned(shell("cd; for i in $(seq 50); do head -c 4000000 /dev/urandom > f$i; done; sleep 20")), want: "WORKSPACE_LIMIT"},
	{name: "filling the disk with deleted files", apart: true, run: filling(openDeleted + "sleep 20"), want: ended},
	{name: "filling the disk with deleted files that are only mapped", apart: true, run: filling("exec ./attacker mapped-deleted 48"), want: ended},
	{name: "filling the disk with deleted files of processes that cannot be inspected", apart: true, run: filling(keptBy("./attacker keep unseen")), want: ended},
	{name: "filling the disk with deleted files of unreadable programs", apart: true, run: filling("cp attacker unread; chmod 111 unread; " + keptBy("./unread keep unread")), want: ended},
	{name: "filling the disk with deleted files of processes whose first threads have ended", apart: true, run: filling(keptBy("./attacker keep beheaded")), want: ended},
	{name: "filling the disk with deleted files of which a page is mapped, once the first thread has ended", apart: true, run: filling("exec ./attacker keep beheaded-mapping"), want: ended},
	{name: "filling the disk with deleted files of which a page is mapped", apart: true, run: filling("exec ./attacker keep mapping"), want: ended},
	{name: "filling the disk with deleted files of which a page is mapped, and whose room is reserved", run: program("keep reserved-mapping"), want: "ENOTSUP"},
	{name: "filling the disk with deleted files of which a page is mapped, and that another command writes", apart: true, run: onASmallDisk(func(t *testing.T, s *scene) result {
		maps := s.launch(t.Context(), t, &sandboxv1.ExecStart{Call: s.call(), Argv: []string{"bash", "-c", "echo on; exec ./attacker keep found-mapping"}})
		if _, err := maps.Recv(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.exec(t.Context(), "for i in $(seq 48); do dd if=/dev/zero of=new bs=1M count=4 status=none; mv new found-$i; sleep 0.05; done; sleep 20", within(25)); err != nil {
			t.Fatal(err)
		}
		r, err := follow(maps)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}), want: ended},
	{name: "filling the disk with deleted files with a mapped page, written by orphaned processes", apart: true, run: filling("exec ./attacker keep orphaned-mapping"), want: ended},
	{name: "filling the disk with deleted files of a process that always forks on", apart: true, run: filling("(" + openDeleted + "hand() { hand & }; hand) 2>/dev/null & sleep 20"), want: "WORKSPACE_LIMIT disk( processes)?; unharmed; fine"},
	{name: "filling the disk with names", run: cleaned(shell("mkdir many; cd many; for i in $(seq 1000); do : > $i; done; sleep 20")), want: "WORKSPACE_LIMIT"},
	{name: "folders without end", run: func(t *testing.T, s *scene) string {
		outcome := shell("./attacker deep 5000; sleep 20")(t, s)
		// They are so deep that no command is let in before they are gone.
		if _, err := s.files.DeleteFile(t.Context(), &sandboxv1.DeleteFileRequest{Call: s.call(), Path: "d", Recursive: true}); err != nil {
			t.Error(err)
		}
		return outcome
	}, want: "(made )?WORKSPACE_LIMIT"},
	{name: "a file larger than it may be", run: cleaned(shell("exec head -c 9000000 /dev/zero > big")), want: "SIGNALED 25|FILE_LIMIT"},
	{name: "a file that is large by its size alone", run: program("sparse 1000"), want: "EFBIG|SIGNALED 25|FILE_LIMIT"},
	{name: "output without end", run: shell("exec yes", quiet), want: "y OUTPUT_LIMIT"},
	{name: "errors without end", run: shell("exec yes >&2", quiet), want: "OUTPUT_LIMIT"},
	{name: "time without end", run: shell("trap '' TERM INT HUP QUIT; while :; do :; done", within(0.5)), want: "TIMED_OUT"},
	{name: "standing still without end", run: shell("kill -STOP $$", within(0.5)), want: "TIMED_OUT"},
	{name: "processors beside a neighbor", run: besieged("for i in $(seq 40); do while :; do :; done & done; echo on; wait", nil), want: "fine"},
	{name: "terminals beside a neighbor that needs one", run: func(t *testing.T, s *scene) string {
		// The first one says so that holds as many as it can.
		outcome, end := s.siege(t, "for i in $(seq 16); do ./attacker hold-terminals 1000 & done; wait", s.neighbor, "echo fine", terminal)
		return outcome + "; " + end
	}, want: "fine; (CANCELLED|TERMINAL_LIMIT)"},
	{name: "deleted files that only a set of rules keeps, which none can look into", run: program("landlock"), want: "ENOSYS"},
	{name: "slots for asynchronous input and output", run: program("async-io 100"), want: "ENOSYS"},
	{name: "signals that wait", run: program("queued-signals 100000"), want: "EAGAIN"},
	{name: "a daemon", run: afterwards("setsid nohup sh -c 'trap \"\" TERM HUP INT; while :; do sleep 0.1; done' >/dev/null 2>&1 & echo started", "cat /proc/[0-9]*/comm | grep -cxE 'sh|sleep'"), want: "0"},
	{name: "a daemon of a daemon", run: afterwards("(setsid sh -c '(setsid sleep 600 &) &' &) ; sleep 0.2", "cat /proc/[0-9]*/comm | grep -cx sleep"), want: "0"},
	{name: "a daemon that stands still", run: afterwards("setsid sh -c 'kill -STOP $$; sleep 600' & sleep 0.2", "cat /proc/[0-9]*/comm | grep -cxE 'sh|sleep'"), want: "0"},
	{name: "a daemon that always forks on", run: afterwards("./attacker runner 100000 & sleep 0.3", "cat /proc/[0-9]*/comm | grep -cx attacker"), want: "0"},
	{name: "a daemon that keeps the output open", run: shell("sleep 600 & echo done", within(10)), want: "done"},
	{name: "a daemon that floods after its command's end", run: afterwards("(while :; do echo flood; done) & echo done", "echo clean"), want: "clean"},
}

func quiet(x *sandboxv1.ExecStart) { x.Limits = &sandboxv1.ExecLimits{OutputBytes: 1} }

func terminal(x *sandboxv1.ExecStart) { x.Terminal = &sandboxv1.TerminalSize{Rows: 25, Columns: 80} }
