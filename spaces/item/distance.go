package item

// EditDistance counts the bytes to insert, delete or replace, and the neighbours to
// swap, to make b of a (optimal string alignment). It gives up with most+1 as soon
// as there are more than most.
func EditDistance(a, b string, most int) int {
	if max(len(a)-len(b), len(b)-len(a)) > most {
		return most + 1
	}
	// Rows are the distances of a prefix of a to each prefix of b.
	before, row, next := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	last := 0 // the smallest of the row before
	for i := range len(a) {
		next[0] = i + 1
		smallest := i + 1
		for j := range len(b) {
			replace := row[j]
			if a[i] != b[j] {
				replace++
			}
			next[j+1] = min(replace, next[j]+1, row[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
			smallest = min(smallest, next[j+1])
		}
		if min(smallest, last+1) > most { // a swap reaches over one row
			return most + 1
		}
		before, row, next, last = row, next, before, smallest
	}
	return min(row[len(b)], most+1)
}

// Nearest is the name that takes the fewest edits to reach from key, the first
// of several. It is empty when none is close: more than a third of the letters
// would change.
func Nearest(key string, names []string) string {
	best, most := "", max(1, len(key)/3)
	for _, name := range names {
		if d := EditDistance(key, name, most); d <= most {
			best, most = name, d-1
		}
	}
	return best
}
