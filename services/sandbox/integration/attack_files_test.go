package integration

// ownTimes are the times of devices, and what there is of one's own input.
const ownTimes = "(times of /dev/(null|zero); |(times|rights|group) of /proc/self/fd/0; )*none"

// fileAttacks want files that are not the workspace's.
var fileAttacks = []attack{
	{name: "reading a file of the host by its path", run: shell("cat {secret} 2>&1"), want: ".*No such file or directory"},
	{name: "reading it by a symbolic link", run: shell("ln -sf {secret} link; cat link 2>&1"), want: ".*No such file or directory"},
	{name: "reading it by going up from the root", run: shell("cat /../../../../../..{secret} 2>&1"), want: ".*No such file or directory"},
	{name: "reading it by the root of a process", run: shell("cat /proc/self/root{secret} /proc/thread-self/root{secret} 2>&1; cat /proc/1/root{secret} 2>&1"), want: ".*No such file.*No such file.*Permission denied"},
	{name: "reading it by the folder of another process", run: shell("for p in /proc/[0-9]*; do cat $p/cwd/../../../../..{secret} $p/cwd{secret} 2>/dev/null; done; echo none"), want: "none"},
	{name: "going up from a folder that was moved", run: shell("mkdir -p up/a/b; cd up/a/b; mv /workspace/up/a/b /tmp/b; cat ../../../../..{secret} 2>&1"), want: ".*No such file or directory"},
	{name: "finding the accounts of the host", run: shell("cut -d: -f1 /etc/passwd | tr '\\n' ' '; cat /etc/shadow /etc/sudoers 2>&1"), want: "root agent nobody .*No such file.*No such file or directory"},
	{name: "finding the homes of the host", run: shell("ls /home; ls /root /home/agent/.ssh 2>&1"), want: "agent; .*No such file.*No such file or directory"},
	{name: "finding sockets of the host in the file system", run: shell("find / -xdev -type s 2>/dev/null; ls /run /var/run /var/lib 2>&1 | grep -v 'No such file'; echo end"), want: "end"},
	{name: "finding control groups in the file system", run: shell("find / -xdev -name cgroup.procs 2>/dev/null; ls -A /sys 2>/dev/null; echo end"), want: "end", unlike: map[string]string{gVisor: `(\w+; )+end`}},
	{name: "hard linking what is not its own", run: shell("ln /etc/passwd own 2>&1; ln /usr/bin/bash own 2>&1"), want: ".*(Invalid cross-device link|Operation not permitted).*(Invalid cross-device link|Operation not permitted)"},
	{name: "writing outside", run: shell("for d in / /usr /usr/bin /etc /dev /lib /home /var /run /sys /proc; do touch $d/x 2>/dev/null && echo $d; done; echo none"), want: "none"},
	{name: "replacing a program", run: shell("cp /bin/true /usr/bin/bash 2>&1; mv /etc/passwd /etc/p 2>&1"), want: ".*Read-only file system.*(Read-only file system|busy)", unlike: map[string]string{gVisor: ".*Permission denied.*(Read-only file system|busy)"}},
	{name: "making the root writable", run: shell("mount -o remount,rw / 2>/dev/null && echo mounted; touch /x 2>&1"), want: "touch: .*Read-only file system", unlike: map[string]string{gVisor: "touch: .*Permission denied"}},
	{name: "putting a link in the place of the workspace", run: shell("cd /; mv /workspace /w 2>&1; rmdir /workspace 2>&1; ln -sfn / /workspace 2>&1"), want: ".*(busy|Read-only).*(busy|Read-only).*", unlike: map[string]string{gVisor: ".*Read-only file system.*Permission denied.*"}},
	{name: "files by handle: naming one", run: program("name-to-handle"), want: "EPERM"},
	{name: "files by handle: opening one", run: program("open-by-handle"), want: "EPERM"},
	{name: "making a block device", run: program("mknod-block"), want: "EPERM"},
	{name: "making a character device", run: program("mknod-char"), want: "EPERM"},
	{name: "changing devices that the machine has too", run: shell("for f in /dev/null /dev/zero /proc/self/fd/0; do touch -c $f 2>/dev/null && echo times of $f; chmod 0 $f 2>/dev/null && echo rights of $f; chgrp agent $f 2>/dev/null && echo group of $f; done; echo none"), want: "none",
		// gVisor has devices of its own. A plain user is who may do it outside, and clusters show what they show: times, and no more.
		unlike: map[string]string{gVisor: "(.*; )?none", inPods: ownTimes, asAPlainUser: ownTimes}},
	{name: "a device beyond the harmless ones", run: shell("ls -A /dev | tr '\\n' ' '"), want: "((console|core|fd|full|null|ptmx|pts|random|shm|stderr|stdin|stdout|tty|urandom|zero) ?)+", unlike: map[string]string{gVisor: "((char|console|core|fd|full|fuse|net|null|ptmx|pts|random|shm|stderr|stdin|stdout|tty|urandom|zero) ?)+"}},
	{name: "device and setuid files that take effect in the workspace", run: shell("for d in /workspace /home/agent /tmp /dev/shm; do findmnt -no OPTIONS $d | grep -o 'nosuid,nodev'; done"), want: "nosuid,nodev; nosuid,nodev; nosuid,nodev; nosuid,nodev", unlike: map[string]string{gVisor: "", inPods: "nosuid,nodev; nosuid,nodev"}},
}
