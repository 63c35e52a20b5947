package planner

import (
	"fmt"
	"slices"
	"strings"
)

// actionOf is what was done with an intent, from what was done with its
// contracts.
func actionOf(lines []ContractLine) Action {
	for _, a := range [...]Action{Move, Place, Resize, Release} {
		if slices.ContainsFunc(lines, func(l ContractLine) bool { return l.Action == a }) {
			return a
		}
	}
	return Keep
}

// joined is the parts of a sentence that there are.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// reasonOf is why something was given up, or else why the best offer was
// taken.
func reasonOf(j *job) string {
	if a := actionOf(j.dec.Contracts); j.why != "" && a != Place && a != Keep {
		return j.why
	}
	for _, p := range j.proposals {
		return "could move " + p.Contract + " to " + p.Flavor + " and save " + p.Saves.Text() + " an hour, since " + stamp(p.Since)
	}
	for i := range j.dec.Contracts {
		l := &j.dec.Contracts[i]
		if l.Action != Place && l.Action != Move {
			continue
		}
		text := fmt.Sprintf("score %.2f", l.Score)
		if l.RunnerUp != nil {
			text += fmt.Sprintf("; next %s %.2f", l.RunnerUp.Flavor, l.RunnerUp.Score)
		}
		return text
	}
	return ""
}

// claimedText names the warm pools that new contracts took slices over from.
func claimedText(lines []ContractLine) string {
	var pools []string
	for i := range lines {
		if l := &lines[i]; l.Claimed != "" && (l.Action == Place || l.Action == Move) {
			pools = append(pools, l.Claimed)
		}
	}
	slices.Sort(pools)
	switch pools = slices.Compact(pools); len(pools) {
	case 0:
		return ""
	case 1:
		return "takes over what was kept warm in pool " + pools[0]
	}
	return "takes over what was kept warm in pools " + strings.Join(pools, ", ")
}

func batchedText(j *job) string {
	if !j.batched || !makesNew(j.dec.Contracts) {
		return ""
	}
	return "chosen so that the intents first seen together cost least in all"
}

// seatedText says why better offers were left alone.
func seatedText(j *job) string {
	if !j.seated || !makesNew(j.dec.Contracts) {
		return ""
	}
	return "chosen so that all replicas find a place within placement.spread"
}

func makesNew(lines []ContractLine) bool {
	return slices.ContainsFunc(lines, func(l ContractLine) bool { return l.Action == Place || l.Action == Move })
}
