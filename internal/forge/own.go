package forge

import (
	"context"
	"strings"
	"sync"
)

// LineMarker begins each comment on a line that Annotate writes.
const LineMarker = "<!-- fleetbroker:line -->"

// Note is a comment as an adapter finds it; comments on lines have a path.
type Note[ID any] struct {
	ID           ID
	Author, Body string
	Path         string
	Line         int
}

// Self is who the token belongs to, asked once.
type Self struct {
	mu    sync.Mutex
	login string
}

// Login is the configured login, else what ask answers.
func (s *Self) Login(ctx context.Context, c Config, ask func(context.Context) (string, error)) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.login == "" {
		s.login = c.User
	}
	if s.login != "" {
		return s.login, nil
	}
	login, err := ask(ctx)
	if err != nil {
		return "", err
	}
	s.login = login
	return login, nil
}

// Own is our comment with a marker among those of a pull request, the oldest
// if there are several; nil when there is none.
func Own[ID any](notes []Note[ID], me, marker string) *Note[ID] {
	for i := range notes {
		if strings.EqualFold(notes[i].Author, me) && strings.HasPrefix(strings.TrimSpace(notes[i].Body), marker) {
			return &notes[i]
		}
	}
	return nil
}

// Same reports whether a comment reads as a text: forges change line ends and
// space at the end.
func Same(a, b string) bool {
	return normal(a) == normal(b)
}

func normal(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
}

// Lines compares our comments on lines with those that should be there: what
// to add, and which to take away.
func Lines[ID any](notes []Note[ID], me string, want []LineComment) (add []LineComment, gone []Note[ID]) {
	type key struct {
		path, body string
		line       int
	}
	missing := map[key]bool{}
	for _, c := range want {
		missing[key{c.Path, normal(marked(c.Body)), c.Line}] = true
	}
	for _, n := range notes {
		if n.Path == "" || !strings.EqualFold(n.Author, me) || !strings.HasPrefix(strings.TrimSpace(n.Body), LineMarker) {
			continue
		}
		k := key{n.Path, normal(n.Body), n.Line}
		if missing[k] {
			delete(missing, k)
			continue
		}
		gone = append(gone, n)
	}
	for _, c := range want {
		k := key{c.Path, normal(marked(c.Body)), c.Line}
		if missing[k] {
			delete(missing, k)
			c.Body = marked(c.Body)
			add = append(add, c)
		}
	}
	return add, gone
}

func marked(body string) string { return LineMarker + "\n" + body }
