package forge

import "fmt"

// PageSize is how many entries a page has that is asked for: what all three
// forges give at most without being configured otherwise is 50.
const PageSize = 50

// maxPages bounds a list.
const maxPages = 200

// Pages reads a list to its end. get returns a page, from 1, and the number of
// the next one, 0 after the last.
func Pages[T any](get func(page int) (list []T, next int, err error)) ([]T, error) {
	var all []T
	page := 1
	for range maxPages {
		list, next, err := get(page)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
		if next <= page {
			return all, nil
		}
		page = next
	}
	return nil, fmt.Errorf("%w: a list has more than %d pages", ErrUnavailable, maxPages)
}
