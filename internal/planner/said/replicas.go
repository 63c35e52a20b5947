package said

import "fmt"

// Replicas is a number of replicas in words.
func Replicas(n int) string {
	switch n {
	case 0:
		return "no replica"
	case 1:
		return "1 replica"
	}
	return fmt.Sprintf("%d replicas", n)
}

// One is so many replicas in words, before "more".
func One(n int) string {
	if n == 1 {
		return "one"
	}
	return fmt.Sprint(n)
}
