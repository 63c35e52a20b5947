package view

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a page of a list.
const (
	defaultSize = 50
	maxSize     = 1000
	maxWords    = 200 // bytes of a search
	maxDays     = 366
	allStates   = "all"
)

// Query says which part of a list is wanted.
type Query struct {
	// Text that a row contains, whatever the case.
	Text string
	// State is a state or phase; "" is the list's default, "all" everything.
	State string
	// By is what costs are added up by, Month of which month.
	By, Month string
	// Tenant, Provider and Consumer that rows belong to.
	Tenant, Provider, Consumer string
	// Days of a calendar; 0 for its default.
	Days int
	// Page from 1, and how many rows it has.
	Page, Size int
}

// states are the values of a list's state, as its page offers them; "all" is one everywhere.
var states = map[string][]string{
	"intents":   {"Placed", "Queued", "Booked", "Refused", "New", "Frozen", "Suspended", "Releasing", "Done"},
	"contracts": {"All", "Booked", "Active", "Reserved", "Peering", "Degraded", "Releasing", "Released", "Expired", "Preempted", "Failed"},
	"flavors":   {"Free", "Fresh", "Static", "Silent", "Lost", "Withdrawn", "Elsewhere", "Cordoned"},
	"providers": {"Provider", "Consumer", "Ready", "Silent", "Lost", "Elsewhere", "Cordoned", "Draining", "Unreported", "Unreachable"},
	"audit":     {"Verified", "Violates", "NotJudged", "TakenAsItIs"},
}

// States are the values of a list's state, nil where it has none.
func States(list string) []string { return states[list] }

// CheckState is an error unless the query's state is one of a list's, whatever the case.
func (q Query) CheckState(list string) error {
	known := states[list]
	if known == nil || q.State == "" || strings.EqualFold(q.State, allStates) || slices.ContainsFunc(known, func(s string) bool { return strings.EqualFold(s, q.State) }) {
		return nil
	}
	if known[0] != "All" {
		known = append([]string{"All"}, known...)
	}
	return fmt.Errorf("state: %.40q is no state of %s; use one of %s", q.State, list, strings.ToLower(strings.Join(known, ", ")))
}

// ParseQuery reads a query from the parameters of a URL. A value that is not understood is an
// error that names it; which parameters there are is for the caller to check.
func ParseQuery(v url.Values) (Query, error) {
	q := Query{
		Text: strings.TrimSpace(v.Get("q")), State: v.Get("state"), By: v.Get("by"), Month: v.Get("month"),
		Tenant: v.Get("tenant"), Provider: v.Get("provider"), Consumer: v.Get("consumer"), Page: 1, Size: defaultSize,
	}
	if len(q.Text) > maxWords {
		return q, fmt.Errorf("q: the search has %d bytes; at most %d are allowed", len(q.Text), maxWords)
	}
	for _, n := range []struct {
		name string
		into *int
		most int
	}{{"page", &q.Page, 1 << 20}, {"size", &q.Size, maxSize}, {"days", &q.Days, maxDays}} {
		text := v.Get(n.name)
		if text == "" {
			continue
		}
		i, err := strconv.Atoi(text)
		if err != nil || i < 1 || i > n.most {
			return q, fmt.Errorf("%s: %.20q is not a number from 1 to %d", n.name, text, n.most)
		}
		*n.into = i
	}
	return q, nil
}

// Values are the query as parameters of a URL, without the page.
func (q Query) Values() url.Values {
	v := url.Values{}
	for name, text := range map[string]string{"q": q.Text, "state": q.State, "by": q.By, "month": q.Month, "tenant": q.Tenant, "provider": q.Provider, "consumer": q.Consumer} {
		if text != "" {
			v.Set(name, text)
		}
	}
	if q.Days != 0 {
		v.Set("days", strconv.Itoa(q.Days))
	}
	if q.Size != defaultSize {
		v.Set("size", strconv.Itoa(q.Size))
	}
	return v
}

// List is one page of the rows that a query asks for.
type List[T any] struct {
	Items []T `json:"items"`
	// Total rows that the query matches, on Pages pages, of which this is Page.
	Total int `json:"total"`
	Page  int `json:"page"`
	Pages int `json:"pages"`
	// First is the number of the first row, from 1; 0 when there is none.
	First int `json:"first"`

	query Query
}

// Query that the list answers.
func (l List[T]) Query() Query { return l.query }

// Last is the number of the last row.
func (l List[T]) Last() int { return l.First + max(len(l.Items)-1, 0) }

// listOf cuts the wanted page out of rows that match. A page beyond the end is the last.
func listOf[T any](rows []T, q Query, match func(*T) bool) List[T] {
	if q.Size < 1 {
		q.Size = defaultSize
	}
	at := make([]int, 0, len(rows))
	for i := range rows {
		if match(&rows[i]) {
			at = append(at, i)
		}
	}
	l := List[T]{Items: []T{}, Total: len(at), Pages: max((len(at)+q.Size-1)/q.Size, 1), query: q}
	l.Page = min(max(q.Page, 1), l.Pages)
	l.query.Page = l.Page
	from := (l.Page - 1) * q.Size
	for _, i := range at[from:min(from+q.Size, len(at))] {
		l.Items = append(l.Items, rows[i])
	}
	if len(l.Items) > 0 {
		l.First = from + 1
	}
	return l
}

// Rows is the wanted page of rows that all match.
func Rows[T any](rows []T, q Query) List[T] {
	return listOf(rows, q, func(*T) bool { return true })
}

// has reports whether one of the texts contains the wanted one, which is in lower case.
func has(wanted string, texts ...string) bool {
	if wanted == "" {
		return true
	}
	for _, t := range texts {
		if strings.Contains(strings.ToLower(t), wanted) {
			return true
		}
	}
	return false
}
