package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
)

// maxWords bounds what is read of a refusal's body.
const maxWords = 4 << 10

type wordsKey struct{}

type heard struct {
	mu   sync.Mutex
	said string
}

// Listen keeps what the last refused request under a context was answered,
// for calls whose SDK drops it.
func Listen(ctx context.Context) (context.Context, func() string) {
	h := &heard{}
	return context.WithValue(ctx, wordsKey{}, h), func() string {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.said
	}
}

// listen reads the beginning of a refusal and puts it back.
func listen(ctx context.Context, resp *http.Response) {
	h, ok := ctx.Value(wordsKey{}).(*heard)
	if !ok || resp.StatusCode < http.StatusBadRequest {
		return
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxWords))
	rest := resp.Body
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), rest}
	if err != nil {
		return
	}
	said := strings.TrimSpace(string(head))
	var m struct{ Message string }
	if json.Unmarshal(head, &m) == nil && m.Message != "" {
		said = m.Message
	}
	h.mu.Lock()
	h.said = said
	h.mu.Unlock()
}
