package simulated

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/fleetbroker/fleetbroker/internal/market"
)

// maxTableBytes bounds a table: 200,000 rows are some 30 MiB.
const maxTableBytes = 256 << 20

// ReadTable reads a table, of a bounded size.
func ReadTable(name string) ([]byte, error) {
	f, err := os.Open(name) //nolint:gosec // the user named the file
	if err != nil {
		return nil, fmt.Errorf("read the table: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxTableBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the table %s: %w", name, err)
	}
	if len(content) > maxTableBytes {
		return nil, fmt.Errorf("read the table %s: it has more than %d MiB", name, maxTableBytes>>20)
	}
	return content, nil
}

// InFile says where in a file a mistake stands.
func InFile(name string, err error) error {
	var at *market.TableError
	if errors.As(err, &at) {
		return fmt.Errorf("%s:%d:%d: %w", name, at.Line, at.Column, at.Err)
	}
	return fmt.Errorf("%s: %w", name, err)
}
