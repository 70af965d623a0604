package item

// EditDistance counts the bytes to insert, delete or replace to make b of a
// (Levenshtein). It gives up with most+1 as soon as there are more than most.
func EditDistance(a, b string, most int) int {
	if max(len(a)-len(b), len(b)-len(a)) > most {
		return most + 1
	}
	row := make([]int, len(b)+1) // distances of the prefix of a to each prefix of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal, smallest := row[0], i+1
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
			smallest = min(smallest, row[j+1])
		}
		if smallest > most {
			return most + 1
		}
	}
	return row[len(b)]
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
