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
	// askPages bounds how many of the newest pages of comments are looked through for it,
	// and maxAskers the people who are looked up.
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

// Newest reads a list that begins with the newest, and no more of it than some pages, of
// which there may be as many as anybody wants: what strangers write hides nothing that was
// written after it. all begins with the oldest of what was read; pages is how many were.
func Newest[T any](get func(page int) (list []*T, next int, err error)) (all []*T, pages int, err error) {
	for page := 1; page > 0 && pages < askPages && len(all) < askPages*PageSize; {
		list, next, err := get(page)
		pages++
		if err != nil {
			return nil, pages, err
		}
		if all = append(all, Present(list)...); next <= page {
			break
		}
		page = next
	}
	slices.Reverse(all)
	return all, pages, nil
}

// NewestOfOldest is Newest of a list that begins with the oldest: get returns the number of
// its last page too, 0 where it has one.
func NewestOfOldest[T any](get func(page int) (list []*T, last int, err error)) (all []*T, pages int, err error) {
	first, last, err := get(1)
	if err != nil {
		return nil, 1, err
	}
	pages = 1
	for page := last; page > 1 && pages < askPages && len(all) < askPages*PageSize; page-- {
		list, _, err := get(page)
		pages++
		if err != nil {
			return nil, pages, err
		}
		all = append(Present(list), all...)
	}
	if last <= pages {
		all = append(Present(first), all...)
	}
	return all, pages, nil
}
