package filename

// Alternatives returns for how many patterns without braces a valid glob stands, at most most+1. A matcher tries all of
// them.
func Alternatives(glob string, most int) int {
	type level struct{ sum, product int } // of the alternatives before, and of the parts of this one
	open := []level{{product: 1}}
	for i := 0; i < len(glob); i++ {
		top := &open[len(open)-1]
		switch glob[i] {
		case '\\':
			i++
		case '[': // a class has no alternatives
			for i++; i < len(glob) && glob[i] != ']'; i++ {
				if glob[i] == '\\' {
					i++
				}
			}
		case '{':
			open = append(open, level{product: 1})
		case ',':
			if len(open) > 1 {
				*top = level{min(top.sum+top.product, most+1), 1}
			}
		case '}':
			if len(open) > 1 {
				open = open[:len(open)-1]
				above := &open[len(open)-1]
				above.product = min(above.product*(top.sum+top.product), most+1)
			}
		}
	}
	return open[0].product
}
