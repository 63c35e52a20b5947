package gen

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/fleetbroker/fleetbroker/internal/api/openapi"
)

// methods are the client's for the pages: routes that are read and answer in one form.
func (w *writer) methods(routes []openapi.Route) (string, error) {
	var b strings.Builder
	for i := range routes {
		r := &routes[i]
		if r.Method != http.MethodGet || len(r.Answers) != 1 || r.Answers[0].Head == nil {
			continue
		}
		of, err := w.of(r.Answers[0].Type)
		if err != nil {
			return "", err
		}
		args, at := "", fmt.Sprintf("%q", r.Path)
		if params := openapi.PathParams(r.Path); len(params) > 0 {
			args = ", " + strings.Join(params, ", ") + " string"
			var parts []string
			rest := r.Path
			for _, p := range params {
				before, after, _ := strings.Cut(rest, "{"+p+"}")
				parts, rest = append(parts, fmt.Sprintf("%q", before), "url.PathEscape("+p+")"), after
			}
			if rest != "" {
				parts = append(parts, fmt.Sprintf("%q", rest))
			}
			at = strings.Join(parts, "+")
		}
		name := strings.TrimPrefix(r.ID, "get")
		fmt.Fprintf(&b, "// %s is the page of the dashboard at GET %s.\n", name, r.Path)
		fmt.Fprintf(&b, "func (c *Client) %s(ctx context.Context%s, q Query) (*Page[v1alpha1.%s], error) {\n\treturn page[v1alpha1.%s](ctx, c, %s, q)\n}\n\n", name, args, of, of, at)
	}
	return b.String(), nil
}
