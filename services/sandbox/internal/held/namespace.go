package held

import (
	"os"
	"slices"
	"strconv"
)

// Namespace returns the processes visible to the caller in the process namespace of a process; none if that
// process has ended.
func Namespace(of int) Processes {
	space, err := spaceOf(strconv.Itoa(of))
	if err != nil {
		return Processes{Unknown: unrelated(err)}
	}
	all, err := everybody()
	return Processes{Space: space, Unknown: err != nil, All: slices.DeleteFunc(all, func(pid int) bool {
		other, err := spaceOf(strconv.Itoa(pid))
		return err != nil || other != space
	})}
}

// Beside is Namespace of the caller, without itself and the first process there. It includes processes that
// cannot be inspected: they count.
func Beside() Processes {
	space, err := spaceOf("self")
	if err != nil {
		return Processes{Unknown: unrelated(err)}
	}
	self := os.Getpid()
	all, err := everybody()
	return Processes{Space: space, Unknown: err != nil, All: slices.DeleteFunc(all, func(pid int) bool { return pid == 1 || pid == self })}
}

func spaceOf(process string) (string, error) { return os.Readlink("/proc/" + process + "/ns/pid") }

// everybody returns all processes of the machine.
func everybody() (all []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, d := range entries {
		if pid, err := strconv.Atoi(d.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all, nil
}
