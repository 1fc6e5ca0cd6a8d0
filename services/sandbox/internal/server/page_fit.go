package server

import "google.golang.org/protobuf/proto"

// maxAnswer is the most bytes in one answer of many parts: half of the maximum size of a message.
const maxAnswer = 8 << 20

// fits returns how many of the parts go into one answer, at least one. The rest goes into the next: names
// and arguments may be long.
func fits[M proto.Message](parts []M) int {
	size := 0
	for i, p := range parts {
		if size += proto.Size(p); size > maxAnswer && i > 0 {
			return i
		}
	}
	return len(parts)
}
