package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/planner/draft"
)

// Joined is the parts of a sentence that there are.
func Joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "; ")
}

// ReasonOf is why something was given up, or else why the best offer was
// taken.
func ReasonOf(j *draft.Job) string {
	if a := draft.ActionOf(j.Dec.Contracts); j.Why != "" && a != draft.Place && a != draft.Keep {
		return j.Why
	}
	for _, p := range j.Proposals {
		return "could move " + p.Contract + " to " + p.Flavor + " and save " + p.Saves.Text() + " an hour, since " + draft.Stamp(p.Since)
	}
	for i := range j.Dec.Contracts {
		l := &j.Dec.Contracts[i]
		if l.Action != draft.Place && l.Action != draft.Move {
			continue
		}
		text := fmt.Sprintf("score %.2f", l.Score)
		if l.RunnerUp != nil {
			text += fmt.Sprintf("; next %s %.2f", l.RunnerUp.Flavor, l.RunnerUp.Score)
			if l.Left != "" {
				text += ", cheaper and left to others"
			}
		}
		return text
	}
	return ""
}

// ClaimedText names the warm pools that new contracts took slices over from.
func ClaimedText(lines []draft.ContractLine) string {
	var pools []string
	for i := range lines {
		if l := &lines[i]; l.Claimed != "" && (l.Action == draft.Place || l.Action == draft.Move) {
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

// BatchedText is the note on a job that it was placed as a part of its batch, "" for others.
func BatchedText(j *draft.Job) string {
	if !j.Batched || !makesNew(j.Dec.Contracts) {
		return ""
	}
	return "chosen so that the intents first seen together cost least in all"
}

// SeatedText is why better offers were left alone.
func SeatedText(j *draft.Job) string {
	if !j.Seated || !makesNew(j.Dec.Contracts) {
		return ""
	}
	return "chosen so that all replicas find a place within placement.spread"
}

// SharedText is in which domain all replicas were placed.
func SharedText(j *draft.Job) string {
	if !makesNew(j.Dec.Contracts) {
		return ""
	}
	return j.Shared
}

func makesNew(lines []draft.ContractLine) bool {
	return slices.ContainsFunc(lines, func(l draft.ContractLine) bool { return l.Action == draft.Place || l.Action == draft.Move })
}
