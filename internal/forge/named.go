package forge

import (
	"slices"
	"strings"
	"time"
)

// PlanCommand asks for a plan of a fork's head: it, a space and the whole commit
// are the first line of a comment. A part of a commit's name could be made to
// fit another.
const PlanCommand = "/plan"

const (
	// askPages bounds how many pages of comments are looked through for it, and
	// maxAskers the people who are looked up.
	askPages  = 10
	maxAskers = 8
	// edited is how much later than it was written a comment counts as edited:
	// forges keep whole seconds.
	edited = time.Second
)

// Naming says who asked for the plan of a head.
type Naming struct {
	// By is the login of a person with write access, "" when there is none.
	By string
	// Requests is how many the forge was sent to find out.
	Requests int
}

// Word is a comment on a pull request as an adapter finds it.
type Word struct {
	// ID of its author where the forge has numbers, and Login.
	ID    int64
	Login string
	// Machine: the forge says that a program wrote it.
	Machine          bool
	Body             string
	Created, Updated time.Time
}

// Askers are the people who ask for a plan of a head, each once, the newest
// first and no more than a few. The comment's first line is the command and
// nothing else: what is quoted, indented or below other text asks for nothing,
// since replies by mail carry what others wrote. An edited comment does not
// count, since it may not be its author who changed it, nor one of a program or
// of ours, which repeat what others wrote.
func Askers(list []Word, me, head string) []Word {
	var out []Word
	for _, w := range slices.Backward(list) {
		switch {
		case len(out) == maxAskers:
			return out
		case w.Machine || w.Login == "" || strings.EqualFold(w.Login, me) || !namesHead(w.Body, head) || w.Updated.Sub(w.Created) > edited:
		case slices.ContainsFunc(out, func(o Word) bool { return o.Login == w.Login }):
		default:
			out = append(out, w)
		}
	}
	return out
}

func namesHead(body, head string) bool {
	first, _, _ := strings.Cut(body, "\n")
	return len(head) >= 40 && strings.TrimRight(first, " \r") == PlanCommand+" "+head
}

// AskPages reads a list of comments for Askers: to its end, but no further than
// some pages, of which there may be as many as anybody wants. pages is how many
// were read.
func AskPages[T any](get func(page int) (list []*T, next int, err error)) (all []*T, pages int, err error) {
	all, err = upTo(askPages, func(page int) ([]*T, int, error) {
		pages++
		return get(page)
	})
	return all, pages, err
}
