package bounded

import (
	"fmt"
	"strings"
)

// Bomb is a part of a kustomization by which each object of a kind copies one of its
// fields into itself again and again: what it makes is twice as large each time, no
// count shows it, and no memory suffices to build it.
func Bomb(kind, field string) string {
	const once = "- {source: {kind: %[1]s, fieldPath: %[2]s}, targets: [{select: {kind: %[1]s}, fieldPaths: [%[2]s.a, %[2]s.b], options: {create: true}}]}\n"
	return "replacements:\n" + strings.Repeat(fmt.Sprintf(once, kind, field), 40)
}
