package tables

import (
	"strings"
	"unicode"
)

// What a state's colour says: all is well, a person has to look, something is under way.
var stateColors = func() map[string]string {
	out := map[string]string{}
	for color, states := range map[string]string{
		"32": "Active Fresh Placed Ready yes",
		"31": "Degraded Failed Lost Preempted Refused Silent Withdrawn no",
		"33": "Cordoned Draining New Peering Queued Releasing Reserved Suspended",
	} {
		for _, s := range strings.Fields(states) {
			out[s] = color
		}
	}
	return out
}()

// paint colours a cell that holds a state, by its first word.
func paint(header, cell string) string {
	switch header {
	case "STATE", "PHASE", "READY":
	default:
		return cell
	}
	word, _, _ := strings.Cut(cell, " ")
	color := stateColors[strings.TrimSuffix(word, ",")]
	if color == "" {
		return cell
	}
	return "\x1b[" + color + "m" + cell + "\x1b[0m"
}

// broad are the runes that terminals show two cells wide: East Asian wide and fullwidth
// forms (Unicode TR11) and emoji.
var broad = &unicode.RangeTable{
	R16: []unicode.Range16{{0x1100, 0x115f, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xa960, 0xa97f, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1}},
	R32: []unicode.Range32{{0x1f300, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f900, 0x1f9ff, 1}, {0x20000, 0x3fffd, 1}},
}

// runeCells is how many cells of a terminal a rune takes.
func runeCells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(broad, r):
		return 2
	}
	return 1
}
