package integration

// endsInit are outcomes where init is a process like others: the sandbox is gone then, and nothing
// else.
var endsInit = map[string]string{gVisor: "(sent )?LOST|(SIGNALED 9)?", inPods: "(sent ?)?(LOST)?"}

// processAttacks want other processes, or what /proc tells of them.
var processAttacks = []attack{
	{name: "a signal to a process of the host", run: shell("kill -9 {pid} 2>&1"), want: ".*No such process"},
	{name: "seeing processes of the host or of the neighbor", run: shell("cat /proc/[0-9]*/comm | sort -u | grep -cxE 'attacker|sandbox.test|sleep'; ls -d /proc/{pid} 2>&1"), want: "0; .*No such file or directory"},
	{name: "killing all processes", run: shell("kill -9 -1; true"), want: "(SIGNALED 9)?", unlike: endsInit},
	{name: "stopping all processes", run: shell("kill -STOP -1; echo on", within(3)), want: "on", unlike: map[string]string{inPods: "(on )?(TIMED_OUT|LOST)"}},
	{name: "every signal to init", run: program("kill-init"), want: "sent", unlike: endsInit},
	{name: "tracing init", run: program("ptrace-attach-init"), want: "EPERM"},
	{name: "seizing init", run: program("ptrace-seize-init"), want: "EPERM"},
	{name: "tracing another process of the same user", run: program("ptrace-child"), want: "EPERM"},
	{name: "reading the memory of init by system call", run: program("read-init-memory"), want: "EPERM"},
	{name: "writing the memory of init by system call", run: program("write-init-memory"), want: "EPERM"},
	{name: "the memory of init by its file", run: shell("head -c1 /proc/1/mem 2>&1; (echo x > /proc/1/mem) 2>&1"), want: ".*Permission denied.*Permission denied"},
	{name: "the environment and maps of init", run: shell("for f in environ maps auxv stack syscall io; do cat /proc/1/$f >/dev/null 2>&1 && echo $f; done; echo none"), want: "none"},
	{name: "the descriptors of init", run: shell("ls -l /proc/1/fd 2>&1; readlink /proc/1/exe 2>&1; echo end"), want: ".*Permission denied.*end"},
	{name: "taking the socket of init", run: program("steal-descriptor"), want: "EPERM"},
	{name: "comparing what init has open", run: program("kcmp"), want: "EPERM"},
	{name: "moving pages of init", run: program("move-pages"), want: "EPERM"},
	{name: "advice for the memory of another process", run: program("process-madvise"), want: "EPERM"},
	{name: "lowering the limits of init", run: program("limit-init"), want: "EPERM"},
	{name: "replacing the program of init", run: shell("(echo x > /proc/1/exe) 2>&1; echo; cp /bin/true /proc/1/exe 2>&1"), want: ".*Permission denied.*(Permission denied|same file)"},
	{name: "the line that the machine's kernel was started with", run: shell("cat /proc/cmdline 2>/dev/null | wc -c"), want: "0", unlike: map[string]string{gVisor: ".*", inPods: `\d+`}}, // a cluster masks what it masks
	{name: "masked files of /proc", run: shell("for f in kcore keys key-users timer_list kallsyms modules kmsg interrupts iomem ioports sched_debug; do [ -s /proc/$f ] && head -c1 /proc/$f 2>/dev/null && echo $f; done; echo none"), want: "none"},
	{name: "settings of the kernel", run: shell("for f in kernel/core_pattern kernel/panic kernel/hostname vm/drop_caches fs/file-max kernel/ns_last_pid net/ipv4/ip_forward kernel/modprobe; do (echo 1 > /proc/sys/$f) 2>/dev/null && echo $f; done; echo none"), want: "none"},
	{name: "the magic key", run: shell("(echo b > /proc/sysrq-trigger) 2>&1"), want: ".*(Permission denied|Read-only file system|No such file or directory)"},
	{name: "a mapping of users", run: shell("(echo '0 0 1' > /proc/self/uid_map) 2>&1; (echo allow > /proc/self/setgroups) 2>&1"), want: ".*(Operation not permitted|Permission denied|Read-only).*(Operation not permitted|Permission denied|Read-only).*"},
	{name: "escaping the out-of-memory killer", run: shell("(echo -1000 > /proc/self/oom_score_adj) 2>&1"), want: ".*Permission denied", unlike: map[string]string{gVisor: ""}},
	{name: "a better place for its processes", run: program("nice"), want: "EACCES|EPERM", unlike: map[string]string{gVisor: "ok"}},
	{name: "real-time scheduling", run: program("realtime"), want: "EPERM", unlike: map[string]string{gVisor: "EINVAL"}},
	{name: "a storm of signals to init", run: program("signal-storm"), want: "sent", unlike: endsInit},
}
