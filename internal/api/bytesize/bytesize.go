// Package bytesize writes numbers of bytes as people read them.
//
// Pure functions, safe for concurrent use. Messages about limits call it.
package bytesize

import "fmt"

// Text is a number of bytes in the largest unit in which it is whole: "512 MiB".
func Text(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
