package realm

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

// Bounds of a Lease's duration, in whole seconds.
const (
	MinDuration = 5 * time.Second
	MaxDuration = 24*time.Hour + time.Minute
)

// LabelCoordination marks realm Leases among other Leases of the coordination namespace.
const (
	LabelCoordination = "operator.ptah.run/coordination"
	DatabaseTarget    = "database-target"
)

const (
	writeAttempts = 5
	epochPrefix   = "v1-"
	epochBytes    = 16
	// contentionPoll bounds how long a waiter sleeps: the holder may release at any time.
	contentionPoll = 5 * time.Second
)

// ErrMalformed says that a Lease has a foreign holder and no usable duration, so that nobody can tell when it ends. A
// person has to look at it.
var ErrMalformed = errors.New("the realm Lease is malformed; delete it once no operation works on its database")

// Request asks for a Lease.
type Request struct {
	// Digest is a coordination digest.
	Digest string
	Holder string
	// ExpectedEpoch is the epoch under which the caller believes to hold the Lease. Empty adopts whatever epoch the
	// Lease has under this holder, or begins one.
	ExpectedEpoch string
	// NewEpoch is the epoch of a hold that begins, where the caller wrote it down beforehand; empty makes one. Only a
	// caller that did nothing under it yet may ask for it again.
	NewEpoch string
	// Duration is rounded up to whole seconds, MinDuration to MaxDuration.
	Duration time.Duration
}

// Grant is the answer to a Request. Contention is an answer and not an error.
type Grant struct {
	// Held says that the Lease is held by the caller for the whole Duration from now.
	Held bool
	// Epoch of the hold. It changes whenever the Lease was given away, lapsed or was deleted.
	Epoch string
	// ContinuityLost says that the Lease is held, but not without a gap since ExpectedEpoch.
	ContinuityLost bool
	// RetryAfter is when to ask again where Held is false.
	RetryAfter time.Duration
}

// Leases takes, renews and releases realm Leases in one namespace. It is safe for concurrent use.
type Leases struct {
	// Client must not read from a cache.
	Client    client.Client
	Namespace string
	// Clock is used for stopwatches only.
	Clock clock.PassiveClock
	// Random gives the bytes of epochs.
	Random io.Reader

	mu   sync.Mutex
	seen map[string]sighting
}

// sighting is a version of a Lease, when this process saw it first, and the Lease itself where this process wrote it.
type sighting struct {
	version string
	since   time.Time
	own     *coordinationv1.Lease
}

// Acquire takes, renews or takes over a Lease by compare-and-swap. Where this process wrote the Lease last, it takes
// one request; otherwise a read comes first.
func (l *Leases) Acquire(ctx context.Context, request Request) (Grant, error) {
	name, err := LeaseName(request.Digest)
	if err != nil {
		return Grant{}, fmt.Errorf("acquire realm Lease: %w", err)
	}
	if request.Holder == "" || request.Duration < MinDuration || request.Duration > MaxDuration {
		return Grant{}, fmt.Errorf("acquire realm Lease %s: a holder and a duration from %s to %s are needed, not %s", name, MinDuration, MaxDuration, request.Duration)
	}
	for range writeAttempts {
		lease, err := l.current(ctx, name)
		if err != nil {
			return Grant{}, fmt.Errorf("acquire realm Lease %s: %w", name, err)
		}
		grant, next, err := l.decide(name, lease, request)
		if err != nil || next == nil {
			return grant, err
		}
		err = l.write(ctx, next, lease == nil)
		if err == nil {
			return grant, nil
		}
		if !isRace(err) {
			return Grant{}, fmt.Errorf("acquire realm Lease %s: %w", name, err)
		}
	}
	return Grant{RetryAfter: contentionPoll}, nil
}

// decide says what the answer is, and which Lease must be written for it to be true. No Lease to write means
// contention.
func (l *Leases) decide(name string, lease *coordinationv1.Lease, request Request) (Grant, *coordinationv1.Lease, error) {
	now := l.Clock.Now()
	if lease == nil {
		return l.begin(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: l.Namespace,
			Labels: map[string]string{ptahv1.LabelManagedBy: ptahv1.ManagedByValue, LabelCoordination: DatabaseTarget},
		}}, request, now)
	}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if holder == request.Holder {
		next := lease.DeepCopy()
		epoch := next.Annotations[ptahv1.AnnotationLeaseEpoch]
		if epoch == "" {
			return l.begin(next, request, now)
		}
		l.hold(next, request, epoch, now)
		lost := request.ExpectedEpoch != "" && request.ExpectedEpoch != epoch
		return Grant{Held: true, Epoch: epoch, ContinuityLost: lost}, next, nil
	}
	if holder != "" {
		seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)
		if seconds <= 0 {
			return Grant{}, nil, fmt.Errorf("acquire realm Lease %s: %w", name, ErrMalformed)
		}
		left := time.Duration(seconds)*time.Second - now.Sub(l.firstSeen(name))
		if left > 0 {
			return Grant{RetryAfter: min(left, contentionPoll)}, nil, nil
		}
	}
	return l.begin(lease.DeepCopy(), request, now)
}

// begin starts a new epoch.
func (l *Leases) begin(lease *coordinationv1.Lease, request Request, now time.Time) (Grant, *coordinationv1.Lease, error) {
	epoch := request.NewEpoch
	if epoch == "" {
		var err error
		if epoch, err = NewEpoch(l.Random); err != nil {
			return Grant{}, nil, fmt.Errorf("acquire realm Lease %s: %w", lease.Name, err)
		}
	}
	lease.Spec.AcquireTime = &metav1.MicroTime{Time: now}
	if lease.ResourceVersion != "" {
		lease.Spec.LeaseTransitions = ptr.To(ptr.Deref(lease.Spec.LeaseTransitions, 0) + 1)
	}
	l.hold(lease, request, epoch, now)
	return Grant{Held: true, Epoch: epoch, ContinuityLost: request.ExpectedEpoch != ""}, lease, nil
}

func (l *Leases) hold(lease *coordinationv1.Lease, request Request, epoch string, now time.Time) {
	if lease.Annotations == nil {
		lease.Annotations = map[string]string{}
	}
	lease.Annotations[ptahv1.AnnotationLeaseEpoch] = epoch
	lease.Spec.HolderIdentity = ptr.To(request.Holder)
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	lease.Spec.LeaseDurationSeconds = ptr.To(int32((request.Duration + time.Second - 1) / time.Second))
}

// Vouch says whether this process itself wrote the hold of holder under epoch, and less than half of its duration ago,
// so that nobody can have taken it over meanwhile. It sends nothing, and it does not see a Lease that a person edited:
// it is enough before a reading, and not before a change.
func (l *Leases) Vouch(digest, holder, epoch string) bool {
	name, err := LeaseName(digest)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := l.seen[name]
	if seen.own == nil || epoch == "" || ptr.Deref(seen.own.Spec.HolderIdentity, "") != holder ||
		seen.own.Annotations[ptahv1.AnnotationLeaseEpoch] != epoch {
		return false
	}
	duration := time.Duration(ptr.Deref(seen.own.Spec.LeaseDurationSeconds, 0)) * time.Second
	return l.Clock.Now().Sub(seen.since) < duration/2
}

// Release gives a Lease back if holder and epoch still match; anything else is somebody else's, and success. An empty
// epoch stands for whatever epoch the holder has: it is for a resource that has no claim any more.
func (l *Leases) Release(ctx context.Context, digest, holder, epoch string) error {
	name, err := LeaseName(digest)
	if err != nil {
		return fmt.Errorf("release realm Lease: %w", err)
	}
	for range writeAttempts {
		lease, err := l.current(ctx, name)
		if err != nil {
			return fmt.Errorf("release realm Lease %s: %w", name, err)
		}
		if lease == nil || holder == "" || ptr.Deref(lease.Spec.HolderIdentity, "") != holder {
			return nil
		}
		if epoch != "" && lease.Annotations[ptahv1.AnnotationLeaseEpoch] != epoch {
			return nil
		}
		next := lease.DeepCopy()
		next.Spec.HolderIdentity = nil
		next.Spec.RenewTime, next.Spec.AcquireTime, next.Spec.LeaseDurationSeconds = nil, nil, nil
		delete(next.Annotations, ptahv1.AnnotationLeaseEpoch)
		err = l.write(ctx, next, false)
		if err == nil {
			return nil
		}
		if !isRace(err) {
			return fmt.Errorf("release realm Lease %s: %w", name, err)
		}
	}
	return fmt.Errorf("release realm Lease %s: it changed %d times meanwhile", name, writeAttempts)
}

// current returns the Lease as this process wrote it last, or else as it is stored; nil where there is none. A write
// against an outdated copy fails on its resource version, so that the copy is only ever a saved request.
func (l *Leases) current(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	own := l.seen[name].own
	l.mu.Unlock()
	if own != nil {
		return own, nil
	}
	lease := &coordinationv1.Lease{}
	err := l.Client.Get(ctx, client.ObjectKey{Namespace: l.Namespace, Name: name}, lease)
	if apierrors.IsNotFound(err) {
		l.note(name, "", nil)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	l.note(name, string(lease.UID)+"/"+lease.ResourceVersion, nil)
	return lease, nil
}

func (l *Leases) write(ctx context.Context, lease *coordinationv1.Lease, create bool) error {
	var err error
	if create {
		err = l.Client.Create(ctx, lease)
	} else {
		err = l.Client.Update(ctx, lease)
	}
	if err != nil {
		// What is stored now is not known: look before the next write.
		l.mu.Lock()
		if seen, ok := l.seen[lease.Name]; ok {
			seen.own = nil
			l.seen[lease.Name] = seen
		}
		l.mu.Unlock()
		return err
	}
	l.note(lease.Name, string(lease.UID)+"/"+lease.ResourceVersion, lease)
	return nil
}

// note starts the stopwatch of a Lease anew when its version is another than the one seen before.
func (l *Leases) note(name, version string, own *coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]sighting{}
	}
	if version == "" {
		delete(l.seen, name)
		return
	}
	seen := l.seen[name]
	if seen.version != version {
		seen = sighting{version: version, since: l.Clock.Now()}
	}
	seen.own = own
	l.seen[name] = seen
}

func (l *Leases) firstSeen(name string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seen, ok := l.seen[name]; ok {
		return seen.since
	}
	return l.Clock.Now()
}

func isRace(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// NewEpoch returns "v1-" and 16 random bytes in hex.
func NewEpoch(random io.Reader) (string, error) {
	raw := make([]byte, epochBytes)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("new epoch: %w", err)
	}
	return epochPrefix + hex.EncodeToString(raw), nil
}
