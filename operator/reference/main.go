// reference writes the page of phases, reasons, Events and metrics from what the code says of them. It runs by
// "make generate"; a test compares the page.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "reference: name the file to write, as in: go run ./operator/reference support/docs/reasons.md")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(page()), 0o644); err != nil {
		fmt.Fprintf(os.Stderr, "reference: %v\n", err)
		os.Exit(1)
	}
}
