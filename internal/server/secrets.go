package server

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// WebhookSecrets reads a forge's secret from a directory at each request, so that it can be
// rotated.
func WebhookSecrets(dir string, log *slog.Logger) func(string) []byte {
	return func(forge string) []byte {
		if dir == "" {
			return nil
		}
		b, err := os.ReadFile(filepath.Join(dir, forge)) //nolint:gosec // forge is one of four constants
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				log.Error("read a webhook secret", "forge", forge, "error", err)
			}
			return nil
		}
		return []byte(strings.TrimSpace(string(b)))
	}
}
