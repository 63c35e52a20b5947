package celenv

import (
	"sync"

	"github.com/google/cel-go/cel"
)

// mostKept is how many bytes of expressions have what they are evaluated by in memory, twice
// at the most: an evaluator takes some 30 bytes for each of its expression's, and a tenant may
// have a hundred thousand intents with conditions of their own. Tests set another.
var mostKept = 3 << 20

// evaluator is what an expression is evaluated by.
type evaluator struct{ cel.Program }

// evaluators are those that are kept, in two generations: when the young one is full, what
// the old one has is let go.
var evaluators struct {
	mu         sync.Mutex
	young, old map[*Program]bool
	bytes      int // of young
}

// keep keeps what a program is evaluated by, until others have taken its place.
func keep(p *Program, prog cel.Program) {
	e := &evaluators
	e.mu.Lock()
	defer e.mu.Unlock()
	p.live.Store(&evaluator{prog})
	if e.young[p] {
		return
	}
	if e.young == nil || e.bytes+len(p.source) > mostKept {
		for q := range e.old {
			if !e.young[q] {
				q.live.Store(nil)
			}
		}
		e.young, e.old, e.bytes = map[*Program]bool{}, e.young, 0
	}
	e.young[p] = true
	e.bytes += len(p.source)
}

// evaluator is what a program is evaluated by, made again where it was let go.
func (p *Program) evaluator() (cel.Program, error) {
	if live := p.live.Load(); live != nil {
		return live.Program, nil
	}
	env, err := environment()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(p.source)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	prog, err := evaluatorOf(env, ast, p.most)
	if err != nil {
		return nil, err
	}
	keep(p, prog)
	return prog, nil
}
