package onnodes

import "strings"

// refusal begins why a provider refuses a contract for one of its nodes.
const refusal = "node "

// Refusal is why a provider does not honour a contract, where one of its nodes, by its
// hash, is the cause.
func Refusal(node, why string) string { return refusal + node + ": " + why }

// RefusedFor is the node, by its hash, for which a provider refuses a contract; "" where it
// refuses it for another cause.
func RefusedFor(text string) string {
	rest, named := strings.CutPrefix(text, refusal)
	if node, _, ok := strings.Cut(rest, ": "); named && ok && IsHash(node) {
		return node
	}
	return ""
}
