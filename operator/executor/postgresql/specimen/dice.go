// Package specimen makes random PostgreSQL schemas, and pairs of them of which the second is a change of the first, for
// tests of the planner.
//
// It is pure: the same seed makes the same SQL, on any machine and on any day. What it makes loads on PostgreSQL 17 with
// the rights of an ordinary role that owns its database and may grant to the roles "reader" and "probe_app". It holds no
// rows. A pair can be made smaller part by part, so that a pair on which a planner fails ends as a case that a person
// can read.
package specimen

import (
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Dice answers the questions of the generator. A question is named by a path such as "t0/c1/type", and its answer
// depends on the seed and the path alone, never on the questions before it: a change of one answer leaves everything
// else as it was.
type Dice struct {
	seed uint64
	// changed are the paths whose answer is another one than the seed's; again asks all of them anew.
	changed map[string]bool
	again   bool
	// off are the parts that are left out whatever the answer would be.
	off map[string]bool
	// asked are the paths asked so far; true says that the answer was a part that is there.
	asked map[string]bool
}

func newDice(seed uint64, off map[string]bool) *Dice {
	return &Dice{seed: seed, off: off, asked: map[string]bool{}}
}

func (d *Dice) stream(path string, again bool) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(path)) // a hash refuses nothing
	seed := d.seed << 1
	if again {
		seed++
	}
	return rand.New(rand.NewPCG(seed, hash.Sum64())) //nolint:gosec // the same schema from the same seed
}

// has says whether a part is there, with a probability in percent.
func (d *Dice) has(path string, percent int) bool {
	if d.off[path] {
		return false
	}
	yes := d.stream(path, d.again && d.stream(path+"?", true).IntN(2) == 0).IntN(100) < percent
	if d.changed[path] {
		yes = !yes
	}
	d.asked[path] = yes
	return yes
}

// number returns a number from 0 to n-1.
func (d *Dice) number(path string, n int) int {
	i := d.stream(path, d.again && d.stream(path+"?", true).IntN(2) == 0).IntN(n)
	if d.changed[path] && n > 1 {
		i = (i + 1 + d.stream(path, true).IntN(n-1)) % n
	}
	if _, ok := d.asked[path]; !ok {
		d.asked[path] = false
	}
	return i
}

func (d *Dice) pick(path string, choices ...string) string {
	return choices[d.number(path, len(choices))]
}

// may returns a text with a probability in percent, and nothing otherwise.
func (d *Dice) may(path string, percent int, text string) string {
	if d.has(path, percent) {
		return text
	}
	return ""
}

// some returns at least one and at most limit of the choices, in an order of its own.
func (d *Dice) some(path string, limit int, choices []string) []string {
	if len(choices) == 0 {
		return nil
	}
	n := 1 + d.number(path+"/many", min(limit, len(choices)))
	var out []string
	for i := range n {
		c := d.pick(path+"/"+string(rune('a'+i)), choices...)
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// Pair is two schemas.
type Pair struct {
	seed    uint64
	changed map[string]bool
	again   bool
	off     map[string]bool
}

// NewPair returns the pair of a seed. Of eight pairs, seven are a schema with one to eight changes and one is two schemas
// that have about half in common.
func NewPair(seed uint64) Pair {
	p := Pair{seed: seed, changed: map[string]bool{}, off: map[string]bool{}}
	first := newDice(seed, nil)
	generate(first)
	r := first.stream("pair", false)
	if r.IntN(8) == 0 {
		p.again = true
		return p
	}
	paths := slices.Sorted(maps.Keys(first.asked))
	for range 1 + min(r.IntN(8), r.IntN(8)) {
		path := paths[r.IntN(len(paths))]
		if strings.HasSuffix(path, "/family") && r.IntN(4) > 0 {
			continue // no cast leads to a type of another family
		}
		p.changed[path] = true
	}
	return p
}

// Seed returns what the pair was made from.
func (p Pair) Seed() uint64 { return p.seed }

// Old returns the SQL of the first schema.
func (p Pair) Old() string { return generate(newDice(p.seed, p.off)) }

// New returns the SQL of the second schema.
func (p Pair) New() string { return generate(p.second()) }

func (p Pair) second() *Dice {
	d := newDice(p.seed, p.off)
	d.changed, d.again = p.changed, p.again
	return d
}

// Shrink returns the smallest pair it finds for which fails still holds. It asks at most limit times.
func (p Pair) Shrink(limit int, fails func(Pair) bool) Pair {
	attempt := func(smaller Pair) bool {
		if limit <= 0 || smaller.Old() == p.Old() && smaller.New() == p.New() {
			return false
		}
		limit--
		if !fails(smaller) {
			return false
		}
		p = smaller
		return true
	}
	for {
		progress := false
		for _, path := range slices.Sorted(maps.Keys(p.changed)) {
			smaller := p
			smaller.changed = maps.Clone(p.changed)
			delete(smaller.changed, path)
			progress = attempt(smaller) || progress
		}
		for _, path := range p.parts() {
			if p.off[path] || underOff(p.off, path) {
				continue
			}
			smaller := p
			smaller.off = maps.Clone(p.off)
			smaller.off[path] = true
			progress = attempt(smaller) || progress
		}
		if !progress {
			return p
		}
	}
}

// parts are the parts that are there on either side, those that hold others first.
func (p Pair) parts() []string {
	first, second := newDice(p.seed, p.off), p.second()
	generate(first)
	generate(second)
	there := map[string]bool{}
	for _, d := range []*Dice{first, second} {
		for path, yes := range d.asked {
			if yes {
				there[path] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(there), func(a, b string) int {
		if n := strings.Count(a, "/") - strings.Count(b, "/"); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
}

func underOff(off map[string]bool, path string) bool {
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if off[path[:i]] {
			return true
		}
	}
	return false
}
