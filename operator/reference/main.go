// reference writes the page of phases, reasons, Events and metrics from what the code says of them. It runs by
// "make generate"; a test compares the page.
package main

import (
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("reference: ")
	if len(os.Args) != 2 {
		log.Fatal("name the file to write, as in: go run ./operator/reference support/docs/reasons.md")
	}
	if err := os.WriteFile(os.Args[1], []byte(page()), 0o644); err != nil {
		log.Fatal(err)
	}
}
