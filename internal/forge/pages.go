package forge

import (
	"fmt"
	"slices"
)

// PageSize is how many entries a page has that is asked for: what all three
// forges give at most without being configured otherwise is 50.
const PageSize = 50

// maxPages bounds a list.
const maxPages = 200

// Pages reads a list to its end. get returns a page, from 1, and the number of
// the next one, 0 after the last. Entries that are null are left out.
func Pages[T any](get func(page int) (list []*T, next int, err error)) ([]*T, error) {
	return upTo(maxPages, get)
}

// upTo is Pages with another bound. Pages that are larger than they were asked for count for
// as many as they are.
func upTo[T any](most int, get func(page int) (list []*T, next int, err error)) ([]*T, error) {
	var all []*T
	page := 1
	for range most {
		list, next, err := get(page)
		if err != nil {
			return nil, err
		}
		all = append(all, Present(list)...)
		if len(all) > most*PageSize {
			break
		}
		if next <= page {
			return all, nil
		}
		page = next
	}
	return nil, fmt.Errorf("%w: a list has more than %d pages of %d", ErrUnavailable, most, PageSize)
}

// Present are the entries of a list that are not null: a forge, or who stands in
// its place, may answer [null], and the SDKs hand that on.
func Present[T any](list []*T) []*T {
	return slices.DeleteFunc(list, func(p *T) bool { return p == nil })
}

// Answered is an answer of one object; null counts as one without any field.
func Answered[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}
