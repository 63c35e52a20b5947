package ancestry

import (
	"context"

	"github.com/fleetbroker/fleetbroker/internal/api/tree"
)

// Walk visits a commit and its ancestors, each once and the nearest first, until
// visit is done. visit returns the parents through which the walk goes on.
func Walk(ctx context.Context, head tree.Hash, visit func(tree.Hash) (parents []tree.Hash, done bool, err error)) error {
	seen := map[tree.Hash]bool{head: true}
	for queue := []tree.Hash{head}; len(queue) > 0; queue = queue[1:] {
		if err := ctx.Err(); err != nil {
			return err
		}
		parents, done, err := visit(queue[0])
		if err != nil || done {
			return err
		}
		for _, p := range parents {
			if !seen[p] {
				seen[p] = true
				queue = append(queue, p)
			}
		}
	}
	return nil
}
