// Command pgrun gives a throwaway Postgres to tests. It is a process of its
// own because Postgres refuses root, and leaving root's privileges is for a
// whole process.
//
//	pgrun COMMAND ARGUMENTS...   runs a command that finds the server's URL in
//	                             BERTH_TEST_DATABASE_URL, and ends as it does
//	pgrun -serve [-data DIR]     prints the URL and serves until a signal or,
//	                             with -lease FILE, until nobody has held a
//	                             shared lock on that file for some seconds, or
//	                             with -lease -, until standard input is closed
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"berth/db/dbtest"
)

func main() {
	serve := flag.Bool("serve", false, "serve rather than run a command")
	data := flag.String("data", "", "data folder to keep; without it a temporary one")
	lease := flag.String("lease", "", "file whose shared locks keep the server running, - for standard input")
	flag.Parse()
	if !*serve && flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	os.Exit(exitCode(run(*serve, *data, *lease)))
}

func run(serve bool, data, lease string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if serve {
		return dbtest.Serve(ctx, data, lease)
	}
	return dbtest.RunWith(ctx, flag.Args())
}

// exitCode passes on how the command ended; it has said why.
func exitCode(err error) int {
	if err == nil {
		return 0
	}
	var ended *exec.ExitError
	if errors.As(err, &ended) && ended.ExitCode() > 0 {
		return ended.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "pgrun:", err)
	return 1
}
