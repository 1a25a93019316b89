package schema

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// slot is the point of the interval at which a resource is refreshed: the same after every restart, and spread over
// the interval, because it comes from the UID.
func slot(uid string, interval time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(uid))
	return time.Duration(binary.BigEndian.Uint64(sum[:8]) % uint64(interval)).Truncate(time.Second)
}

// nextStart is when the refresh after one that was due at base starts: an interval later, moved back to the
// resource's slot by at most half an interval and never forward. A resource that is on its slot stays on it.
func nextStart(base time.Time, interval time.Duration, uid string) time.Time {
	earliest := base.Add(interval)
	delay := (slot(uid, interval) - time.Duration(earliest.UnixNano()%int64(interval))) % interval
	if delay < 0 {
		delay += interval
	}
	return wholeSecond(earliest.Add(min(delay, interval/2)))
}

// scheduleBase is the start that the next interval counts from. A refresh that was due and started a little late
// counts from when it was due, or being late would add up.
func scheduleBase(now time.Time, due *time.Time, interval time.Duration) time.Time {
	if due == nil || due.After(now) || now.Sub(*due) >= interval/2 {
		return now
	}
	return *due
}

// wholeSecond rounds up, because times in a status have no fractions and nothing may become due too early.
func wholeSecond(at time.Time) time.Time {
	whole := at.Truncate(time.Second)
	if whole.Before(at) {
		whole = whole.Add(time.Second)
	}
	return whole
}
