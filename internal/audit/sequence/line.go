package sequence

import "fmt"

// Line are the numbers of a ledger's commits, one above the other. The zero value has seen
// none.
type Line struct {
	// Seq is the newest, and Begun whether there is any.
	Seq   uint64
	Begun bool
	by    string      // key of the newest, empty for none
	gaps  [][2]uint64 // numbers that no commit has
}

// Next takes the number of the next commit, signed by a key, empty for none. It returns
// what is wrong with it, "" for nothing. raised: the commit names a head of the ledger
// that an operator let go of, and its number may be above all that stood there. cut: what
// came before the first commit is not known.
func (l *Line) Next(seq uint64, by string, raised, cut bool) (fault string) {
	switch restarted := seq == 1 && by != l.by; {
	case restarted, raised && seq > l.Seq:
	case l.Begun && seq != l.Seq+1:
		fault = fmt.Sprintf("Ledger is %d, the one before %d", seq, l.Seq)
	case !l.Begun && seq != 1 && !cut:
		fault = fmt.Sprintf("Ledger is %d, and no commit before has any", seq)
	}
	if l.Begun && seq > l.Seq+1 {
		l.gaps = append(l.gaps, [2]uint64{l.Seq + 1, seq - 1})
	}
	l.Seq, l.Begun, l.by = seq, true, by
	return fault
}

// Lacks says in words what the line has in place of a commit by a number that is none of
// it.
func (l *Line) Lacks(seq uint64) string {
	if seq > l.Seq {
		return Span(l.Seq+1, seq) + " missing"
	}
	for _, g := range l.gaps {
		if g[0] <= seq && seq <= g[1] {
			return Span(g[0], g[1]) + " missing"
		}
	}
	return fmt.Sprintf("it is number %d, and the ledger has another commit by that number", seq)
}
