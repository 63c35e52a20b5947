// Command check runs govulncheck over the programs, on https://vuln.go.dev where
// it answers, else on the part of the database that is pinned in
// test/vulns/testdata:
//
//	go run ./test/vulns/check            # from the project's root; make vulns
//	go run ./test/vulns/check -pinned    # never asks the network
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/fleetbroker/fleetbroker/test/tools"
	"github.com/fleetbroker/fleetbroker/test/vulns"
)

// public is the Go project's own database.
const public = "https://vuln.go.dev"

func main() {
	pinned := flag.Bool("pinned", false, "take the pinned part of the database without asking the network")
	flag.Parse()
	if err := run(context.Background(), *pinned); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, pinned bool) error {
	db := public
	if pinned || !answers(ctx) {
		dir, err := os.MkdirTemp("", "fleetbroker-vulns-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if db, err = vulns.Unpack("test/vulns/testdata/osv.jsonl", dir); err != nil {
			return err
		}
		origin, err := os.ReadFile("test/vulns/testdata/origin")
		if err != nil {
			return err
		}
		fmt.Printf("database: the pinned part of %s\n", strings.TrimSpace(string(origin)))
	} else {
		fmt.Printf("database: %s\n", public)
	}
	program, err := tools.Find(ctx, "govulncheck", os.Stderr)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, "-db", db, "./cmd/...")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// answers reports whether the public database can be reached.
func answers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, public+"/index/db.json", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
