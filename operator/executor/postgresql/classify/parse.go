package classify

import (
	"sync"

	nodes "github.com/pganalyze/pg_query_go/v6"
	parser "github.com/wasilibs/go-pgquery"
)

// parsing is held for each call of the parser. The parser keeps one compiled copy of PostgreSQL's grammar for each
// call that runs beside another, and compiling one takes seconds of processor time where parsing takes microseconds.
var parsing sync.Mutex

func parse(sql string) (*nodes.ParseResult, error) {
	parsing.Lock()
	defer parsing.Unlock()
	return parser.Parse(sql)
}

// Warm makes the parser ready. It may run beside anything else and more than once; whoever parses meanwhile waits for
// it.
func Warm() { _, _ = parse("SELECT 1") }
