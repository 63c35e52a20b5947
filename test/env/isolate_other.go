//go:build !linux

package env

import "errors"

func isolate() error { return errors.New("only Linux has such networks") }
