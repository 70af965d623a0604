package permission

import "unicode/utf8"

// matches reports whether pattern, in which "*" stands for any run of
// characters and "?" for one, matches all of text.
func matches(pattern, text string) bool { return match(pattern, text, false) }

// covers reports whether pattern matches whatever narrow, a pattern too,
// matches. It may miss that where a "?" of pattern stands beside a "*", and is
// exact otherwise.
func covers(pattern, narrow string) bool { return match(pattern, narrow, true) }

// match matches pattern against text, which may be a pattern itself: then its
// "*", which can be any run of characters, is matched by a "*" only. After a
// mismatch only the last "*" is extended, so that the work is at most the
// product of the lengths whatever the pattern.
func match(pattern, text string, isPattern bool) bool {
	p, t := 0, 0
	star, resume := -1, 0 // the last "*", and where in text what follows it was tried
	for t < len(text) {
		_, size := utf8.DecodeRuneInString(text[t:])
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, t
			p++
		case p < len(pattern) && pattern[p] == '?' && (!isPattern || text[t] != '*'):
			p++
			t += size
		case p+size <= len(pattern) && pattern[p:p+size] == text[t:t+size]:
			p += size
			t += size
		case star >= 0:
			_, skipped := utf8.DecodeRuneInString(text[resume:])
			resume += skipped
			p, t = star+1, resume
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// maxTable bounds the work of overlap: more than any two patterns need that
// somebody wrote by hand.
const maxTable = 1 << 22

// overlap reports whether some text matches both patterns. Of patterns whose
// table would be too large it says so too: nothing is allowed because two
// patterns overlap. Row i of the table says for each rest of b whether it
// overlaps with the rest of a from i on.
func overlap(a, b string) bool {
	if (len(a)+1)*(len(b)+1) > maxTable {
		return true
	}
	x, y := []rune(a), []rune(b)
	below := make([]bool, len(y)+1)
	row := make([]bool, len(y)+1)
	for i := len(x); i >= 0; i-- {
		for j := len(y); j >= 0; j-- {
			starX, starY := i < len(x) && x[i] == '*', j < len(y) && y[j] == '*'
			switch {
			case i == len(x) && j == len(y):
				row[j] = true
			case starX || starY:
				// A "*" ends here, or takes in the other side's next character.
				row[j] = starX && below[j] || starY && row[j+1] ||
					starX && j < len(y) && row[j+1] || starY && i < len(x) && below[j]
			case i < len(x) && j < len(y):
				row[j] = (x[i] == y[j] || x[i] == '?' || y[j] == '?') && below[j+1]
			default:
				row[j] = false
			}
		}
		row, below = below, row
	}
	return below[0]
}
