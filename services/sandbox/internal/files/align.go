package files

// maxAlign bounds the effort to align two texts, in pairs of lines.
const maxAlign = 1 << 20

// align returns for each line of a new text the line of the old text that it is, or that it takes the place of. A line
// that was added belongs to the line before it. Neither text is empty.
func align(old, now []string) []int {
	origin := make([]int, len(now))
	first := 0
	for first < min(len(old), len(now)) && old[first] == now[first] {
		origin[first] = first
		first++
	}
	last := 0
	for last < min(len(old), len(now))-first && old[len(old)-1-last] == now[len(now)-1-last] {
		last++
		origin[len(now)-last] = len(old) - last
	}
	olds, news := old[first:len(old)-last], now[first:len(now)-last]
	from, line := 0, 0
	gap := func(until, end int) { // the lines in between are no old ones
		for i := 0; line < end; i++ {
			origin[first+line] = max(min(first+from+i, first+until-1), 0)
			line++
		}
	}
	for _, pair := range common(olds, news) {
		gap(pair[0], pair[1])
		origin[first+line] = first + pair[0]
		from, line = pair[0]+1, pair[1]+1
	}
	gap(len(olds), len(news))
	return origin
}

// common returns the lines that two texts have in common, in order, as pairs of places. It returns none if the texts
// are very long.
func common(old, now []string) (pairs [][2]int) {
	if len(old)*len(now) > maxAlign {
		return nil
	}
	width := len(now) + 1
	length := make([]int32, (len(old)+1)*width) // of the longest common part from two places on
	for i := len(old) - 1; i >= 0; i-- {
		for j := len(now) - 1; j >= 0; j-- {
			at := i*width + j
			if old[i] == now[j] {
				length[at] = length[at+width+1] + 1
			} else {
				length[at] = max(length[at+width], length[at+1])
			}
		}
	}
	for i, j := 0, 0; i < len(old) && j < len(now); {
		switch {
		case old[i] == now[j]:
			pairs = append(pairs, [2]int{i, j})
			i, j = i+1, j+1
		case length[(i+1)*width+j] >= length[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	return pairs
}
