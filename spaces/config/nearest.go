package config

// nearest is the name that takes the fewest edits to reach from key, the first
// of several. It is empty when none is close: more than a third of the letters
// would change.
func nearest(key string, names []string) string {
	best, most := "", max(1, len(key)/3)
	for _, name := range names {
		if d := editDistance(key, name); d <= most {
			best, most = name, d-1
		}
	}
	return best
}

// editDistance counts the letters to insert, delete or replace to turn a into b
// (Levenshtein), in bytes: keys are ASCII.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
