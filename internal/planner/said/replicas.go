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
