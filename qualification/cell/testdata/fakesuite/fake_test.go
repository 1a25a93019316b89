// Package fakesuite is a suite that does what FAKE_SUITE says, for the tests of package cell.
package fakesuite

import (
	"os"
	"testing"
	"time"

	"ptah.run/ptah/qualification/evidence/ledger"
)

var book *ledger.Ledger

func TestMain(m *testing.M) {
	var err error
	if book, err = ledger.OpenFromEnvironment(); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := book.Close(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

func scenario(t *testing.T, name string, do func(*ledger.Scenario)) {
	s := book.Scenario(name)
	defer s.End()
	do(s)
	s.Assert("done", true, "it is done")
}

func TestFirst(t *testing.T) {
	scenario(t, "first", func(*ledger.Scenario) {})
}

func TestSecond(t *testing.T) {
	scenario(t, "second", func(s *ledger.Scenario) {
		switch os.Getenv("FAKE_SUITE") {
		case "die":
			os.Exit(3)
		case "hang":
			time.Sleep(time.Minute)
		case "fail":
			s.Assert("holds", false, "it does not hold")
			t.Error("it does not hold")
		}
	})
}

func TestThird(t *testing.T) {
	t.Parallel()
	scenario(t, "third", func(*ledger.Scenario) { time.Sleep(10 * time.Millisecond) })
}

func TestFourth(t *testing.T) {
	t.Parallel()
	scenario(t, "fourth", func(*ledger.Scenario) { time.Sleep(10 * time.Millisecond) })
}
