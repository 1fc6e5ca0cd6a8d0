package server

import "google.golang.org/protobuf/proto"

// maxAnswer is how much one answer of many parts holds, in bytes: half of what fits into a
// message.
const maxAnswer = 8 << 20

// fits is how many of the parts go into one answer, at least one. What is beyond goes into
// the next: names and arguments may be long.
func fits[M proto.Message](parts []M) int {
	size := 0
	for i, p := range parts {
		if size += proto.Size(p); size > maxAnswer && i > 0 {
			return i
		}
	}
	return len(parts)
}
