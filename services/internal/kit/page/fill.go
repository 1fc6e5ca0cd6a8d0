package page

import "google.golang.org/protobuf/proto"

// MaxBytes is about the most bytes of the entries of one page. gRPC clients accept messages of 4 MiB by
// default. Only a page of one entry may be larger.
const MaxBytes = 1 << 20

// maxRead is how many entries Fill reads at one time, so that a long page of large entries does not fill the memory.
const maxRead = 50

// Fill reads a page: at most size entries, about MaxBytes, but at least one entry unless the list has ended.
// It reports whether the list goes on behind them. read returns up to n entries behind the entry after, or
// from the page's beginning when after is the zero value.
func Fill[M interface {
	comparable
	proto.Message
}](size int, read func(after M, n int) ([]M, error)) (entries []M, more bool, err error) {
	var last M
	for bytes := 0; ; {
		n := min(size-len(entries), maxRead)
		some, err := read(last, n+1) // one more shows whether the list goes on
		if err != nil {
			return nil, false, err
		}
		more := len(some) > n
		for _, m := range some[:min(n, len(some))] {
			if bytes += proto.Size(m); bytes > MaxBytes && len(entries) > 0 {
				return entries, true, nil
			}
			entries, last = append(entries, m), m
		}
		if !more || len(entries) == size {
			return entries, more, nil
		}
	}
}
