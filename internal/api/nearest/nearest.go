// Package nearest finds the word that somebody probably meant: for "did you
// mean" in messages about unknown fields, values and names. Pure; knows no
// other room.
package nearest

// Of is the known word closest to a misspelt one by edit distance (insertion,
// deletion, substitution and transposition each cost one; case costs nothing),
// "" when none is close enough: at most one edit in three characters. Ties go
// to the earlier word.
func Of(word string, known []string) string {
	best, bestDistance := "", len(word)/3+1
	if len(word) < 3 {
		bestDistance = 2
	}
	for _, k := range known {
		if k == word || len(k)-len(word) >= bestDistance || len(word)-len(k) >= bestDistance {
			continue
		}
		if d := distance(word, k, bestDistance); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is the optimal string alignment distance; it gives up at limit.
func distance(a, b string, limit int) int {
	two, one, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if lower(a[i-1]) == lower(b[j-1]) {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && lower(a[i-1]) == lower(b[j-2]) && lower(a[i-2]) == lower(b[j-1]) {
				row[j] = min(row[j], two[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least >= limit {
			return limit
		}
		two, one, row = one, row, two
	}
	return one[len(b)]
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
