package forgetest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Me is who the fake's token belongs to, and Token the token it takes.
const (
	Me    = "fleetbroker-bot"
	Token = "forge-token-of-the-test"
)

// pageMax is how many entries a page of a fake has, whatever is asked for.
const pageMax = 2

// Fake is the state of a forge that does not exist.
type Fake struct {
	*httptest.Server

	mu       sync.Mutex
	pulls    []*Pull
	comments []*Comment
	statuses map[string][]Status
	last     int64
	requests int
	people   []Person
	fault    func(w http.ResponseWriter, r *http.Request) bool
}

// Pull is a pull request of a fake.
type Pull struct {
	Number              int64
	Title, Body, Author string
	Branch, Head, Base  string
	Fork                bool
	Merged, Closed      bool
	MergeCommit         string
	Approvers           []string
	NotReady            bool // a merge waits for required checks
}

// Comment is one on a pull request; those on a line have a path.
type Comment struct {
	ID, Pull     int64
	Author, Body string
	Path         string
	Line         int
	Edited       bool
}

// times are when it was written and changed.
func (c Comment) times() (written, changed time.Time) {
	if c.Edited {
		return when, when.Add(time.Minute)
	}
	return when, when
}

// Status is one that was set.
type Status struct{ Context, State, Description string }

func newFake(t *testing.T, routes func(*Fake, *http.ServeMux), authorized func(http.Header) bool) *Fake {
	f := &Fake{statuses: map[string][]Status{}}
	mux := http.NewServeMux()
	routes(f, mux)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.requests++
		if f.fault != nil && f.fault(w, r) {
			return
		}
		if !authorized(r.Header) {
			refuse(w, http.StatusUnauthorized, "Bad credentials")
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// Add adds a pull request and returns its number.
func (f *Fake) Add(p Pull) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(p).Number
}

func (f *Fake) add(p Pull) *Pull {
	p.Number = int64(len(f.pulls) + 1)
	f.pulls = append(f.pulls, &p)
	return &p
}

// Change changes a pull request.
func (f *Fake) Change(number int64, change func(*Pull)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.pulls[number-1])
}

// Say adds a comment of somebody.
func (f *Fake) Say(number int64, author, body string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.say(Comment{Pull: number, Author: author, Body: body})
}

func (f *Fake) say(c Comment) *Comment {
	f.last++
	c.ID = f.last
	f.comments = append(f.comments, &c)
	return &c
}

// Person is a user of a fake who has some access to the repository.
type Person struct {
	Login string
	// Access in the forge's own word: "write" on GitHub, its number on GitLab.
	Access string
	Bot    bool
	// State on GitLab, "active" if empty.
	State string
}

// Writer gives a user write access.
func (f *Fake) Writer(login string) { f.Grant(Person{Login: login, Access: "write"}) }

// Grant makes a user known, or changes what is known of one.
func (f *Fake) Grant(p Person) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := f.person(p.Login); i >= 0 {
		f.people[i] = p
		return
	}
	f.people = append(f.people, p)
}

// person is a user's place among those that are known, -1 when there is none.
func (f *Fake) person(login string) int {
	return slices.IndexFunc(f.people, func(p Person) bool { return p.Login == login })
}

// Reword changes the newest comment that has a text, as an edit does.
func (f *Fake) Reword(from, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range slices.Backward(f.comments) {
		if c.Body == from {
			c.Body, c.Edited = to, true
			return
		}
	}
}

// Comments are those of a pull request, on lines or not.
func (f *Fake) Comments(number int64, lines bool) []Comment {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.of(number, lines)
}

func (f *Fake) of(number int64, lines bool) []Comment {
	var out []Comment
	for _, c := range f.comments {
		if c.Pull == number && (c.Path != "") == lines {
			out = append(out, *c)
		}
	}
	return out
}

// Statuses of a commit, in the order in which they were set.
func (f *Fake) Statuses(commit string) []Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.statuses[commit])
}

// Requests is how many came.
func (f *Fake) Requests() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests
}

// Fault is asked before each request is answered, until it is replaced: true
// says that it has answered itself. nil takes it away.
func (f *Fake) Fault(fault func(w http.ResponseWriter, r *http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// inDiff reports whether a line may be commented on: the fake's diffs have ten.
func inDiff(line int) bool { return line <= 10 }

// when is when everything here happened.
var when = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func (f *Fake) pull(w http.ResponseWriter, r *http.Request) *Pull {
	n, err := strconv.ParseInt(r.PathValue("n"), 10, 64)
	if err != nil || n < 1 || n > int64(len(f.pulls)) {
		refuse(w, http.StatusNotFound, "Not Found")
		return nil
	}
	return f.pulls[n-1]
}

func (f *Fake) comment(w http.ResponseWriter, r *http.Request) *Comment {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	for _, c := range f.comments {
		if c.ID == id {
			return c
		}
	}
	refuse(w, http.StatusNotFound, "Not Found")
	return nil
}

func (f *Fake) remove(id int64) {
	f.comments = slices.DeleteFunc(f.comments, func(c *Comment) bool { return c.ID == id })
}

// page cuts a list and says whether there is more.
func page[T any](r *http.Request, list []T) (part []T, next int) {
	n, _ := strconv.Atoi(r.URL.Query().Get("page"))
	n = max(n, 1)
	from := min((n-1)*pageMax, len(list))
	to := min(from+pageMax, len(list))
	if to < len(list) {
		next = n + 1
	}
	return list[from:to], next
}

// pages is how many pages a list has.
func pages[T any](list []T) int { return max(1, (len(list)+pageMax-1)/pageMax) }

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]string{"message": message})
}

// body reads a request's JSON.
func body(r *http.Request) map[string]any {
	var m map[string]any
	_ = json.NewDecoder(r.Body).Decode(&m)
	return m
}

func text(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func number(m map[string]any, key string) int {
	n, _ := m[key].(float64)
	return int(n)
}

// matches filters as the lists of both forges do.
func (p *Pull) matches(open bool, base, branch string) bool {
	if open && (p.Merged || p.Closed) {
		return false
	}
	return (base == "" || p.Base == base) && (branch == "" || p.Branch == strings.TrimPrefix(branch, "acme:"))
}

// Recorder is another host, which tells what headers it was sent.
func Recorder(t *testing.T, got chan<- http.Header) string {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	t.Cleanup(s.Close)
	return s.URL
}
