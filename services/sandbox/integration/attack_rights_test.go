package integration

import (
	sandboxv1 "github.com/fairlead/fairlead/gen/go/fairlead/sandbox/v1"
)

// rightsAttacks try to become another user, or to get the service's rights.
var rightsAttacks = []attack{
	{name: "being root", run: program("setuid-root"), want: "EINVAL|EPERM"},
	{name: "being another sandbox's user", run: program("setresuid-host"), want: "EINVAL", unlike: map[string]string{gVisor: "EPERM"}},
	{name: "other groups", run: program("setgroups"), want: "EPERM"},
	{name: "giving a file away", run: shell("touch own; chown 0 own 2>&1; chown 300001 own 2>&1"), want: ".*(Invalid argument|not permitted).*(Invalid argument|not permitted)"},
	{name: "a setuid copy of a shell", run: shell("cp /bin/bash own-bash; chmod 6755 own-bash; ./own-bash -p -c 'id -ru; id -u' | uniq; rm own-bash"), want: "1000", unlike: map[string]string{inPods: `3\d{5}`}},
	{name: "the setuid programs of the machine", run: shell("su -c id </dev/null >/dev/null 2>&1 && echo su; sudo -n id >/dev/null 2>&1 && echo sudo; [ -e /usr/bin/mount ] && mount -t tmpfs x /tmp 2>/dev/null && echo mount; echo none"), want: "none"},
	{name: "a capability", run: shell("grep -h ^Cap /proc/self/status | grep -vc 0000000000000000"), want: "0"},
	{name: "setting capabilities", run: program("capset"), want: "EPERM"},
	{name: "an ambient capability", run: program("ambient-capability"), want: "EPERM"},
	{name: "secure bits", run: program("securebits"), want: "EPERM"},
	{name: "new privileges", run: program("no-new-privileges-off"), want: "EINVAL"},
	{name: "taking the filter away", run: program("seccomp-off"), want: "EINVAL"},
	{name: "being less filtered than init, or init more than it", run: shell("for f in Seccomp NoNewPrivs CapEff CapPrm CapBnd Uid; do [ \"$(grep \"^$f:\" /proc/1/status)\" = \"$(grep \"^$f:\" /proc/self/status)\" ] || echo $f; done; echo same"), want: "same"},
	{name: "the service's environment", run: shell("env | grep -c 'secret'; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c 'secret'"), want: "0; 0"},
	{name: "a library in the way of init", run: shell("echo on; cat /proc/1/environ 2>&1", func(s *sandboxv1.ExecStart) {
		s.Env = map[string]string{"LD_PRELOAD": "/workspace/evil.so", "LD_LIBRARY_PATH": "/workspace", "GODEBUG": "inittrace=1"}
	}), want: "on; .*Permission denied"},
	{name: "a program of its own in the place of another's name", run: shell("printf '#!/bin/sh\\necho evil' > bash; chmod 755 bash; cp bash ~/bash; echo $0; rm bash"), want: "bash"},
	{name: "raising the limit of open files", run: shell("ulimit -n 1000000 2>&1"), want: ".*(not permitted|cannot modify limit).*"},
	{name: "raising the limit of files", run: shell("ulimit -f unlimited 2>&1"), want: ".*(not permitted|cannot modify limit).*"},
	{name: "a core file, or a program of the host that gets one", run: program("core-limit"), want: "1 1, ok ok, 1 1"},
	{name: "input into a terminal", run: program("inject"), want: "EPERM"},
}
