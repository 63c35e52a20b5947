package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/fleetbroker/fleetbroker/internal/cli"
)

// manDir is where manual pages lie in an archive: `man -M DIR` finds them, and packages
// copy them from there.
const manDir = "man/man1/"

// manuals are the manual pages of all commands of fleetbroker, sorted by name. They follow
// from the version and the time alone.
func manuals(version string, at time.Time) ([]member, error) {
	var out []member
	var add func(*cobra.Command) error
	add = func(cmd *cobra.Command) error {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
		header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Date: &at, Source: "fleetbroker " + version, Manual: "fleetbroker"}
		var page bytes.Buffer
		cmd.DisableAutoGenTag = true
		if err := doc.GenMan(cmd, header, &page); err != nil {
			return fmt.Errorf("write the manual page of %s: %w", name, err)
		}
		out = append(out, member{manDir + name + ".1", page.Bytes(), 0o644})
		for _, c := range cmd.Commands() {
			if !c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
				continue
			}
			if err := add(c); err != nil {
				return err
			}
		}
		return nil
	}
	if err := add(cli.NewRoot(cli.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}})); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	return out, nil
}
