package receiver

import (
	"crypto/sha256"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"
)

// A reviewed token is known for reviewLifetime, so that a Pod which fetches its plan and delivers its result is
// reviewed once. That a token says which Pod it is bound to does not change, and that the Pod still exists is read live
// for every request.
const (
	reviewLifetime = 30 * time.Second
	maxReviews     = 64
)

type review struct {
	status *authenticationv1.TokenReviewStatus
	until  time.Time
}

// reviewCache holds digests of tokens, never tokens.
type reviewCache struct {
	clock   clock.PassiveClock
	mutex   sync.Mutex
	reviews map[[sha256.Size]byte]review
}

func newReviewCache(c clock.PassiveClock) *reviewCache {
	return &reviewCache{clock: c, reviews: map[[sha256.Size]byte]review{}}
}

// find returns the review of a token that was accepted a moment ago, or nil.
func (c *reviewCache) find(token string) *authenticationv1.TokenReviewStatus {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	kept, found := c.reviews[sha256.Sum256([]byte(token))]
	if !found || !c.clock.Now().Before(kept.until) {
		return nil
	}
	return kept.status
}

// keep remembers an accepted review. Refusals are asked again.
func (c *reviewCache) keep(token string, status *authenticationv1.TokenReviewStatus) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.clock.Now()
	key := sha256.Sum256([]byte(token))
	for other, kept := range c.reviews {
		if !now.Before(kept.until) {
			delete(c.reviews, other)
		}
	}
	if _, known := c.reviews[key]; known || len(c.reviews) >= maxReviews {
		return
	}
	c.reviews[key] = review{status: status, until: now.Add(reviewLifetime)}
}
