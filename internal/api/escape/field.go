package escape

import (
	"strconv"
	"strings"
)

// Field is a path as a trailer has it, whose fields stand apart by spaces.
func Field(path string) string {
	if strings.ContainsAny(path, " \t\"") {
		return strconv.Quote(path)
	}
	return path
}
