package receiver

import "sync"

// underway is the set of publications whose requests are worked on. An operation Pod asks for one thing at a time, so
// that a second request of the same Pod is refused until the first ended: a Pod that hangs in the middle of its result
// takes one slot and never all of them.
type underway struct {
	mu  sync.Mutex
	set map[string]struct{}
}

// begin says whether the publication was free, and takes it.
func (u *underway) begin(publication string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, taken := u.set[publication]; taken {
		return false
	}
	if u.set == nil {
		u.set = map[string]struct{}{}
	}
	u.set[publication] = struct{}{}
	return true
}

func (u *underway) end(publication string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.set, publication)
}
