package realm

import (
	"context"
	"errors"
	"math/rand"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

func TestADigestNamesOneDatabase(t *testing.T) {
	key := func(engine, namespace, key string) string {
		digest, err := KeyDigest(engine, namespace, key)
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	realm, err := NameDigest("PostgreSQL", "orders")
	if err != nil {
		t.Fatal(err)
	}
	base := key("PostgreSQL", "team-a", "orders")
	for name, other := range map[string]string{
		"another namespace":            key("PostgreSQL", "team-b", "orders"),
		"another engine":               key("MySQL", "team-a", "orders"),
		"another key":                  key("PostgreSQL", "team-a", "orders2"),
		"a realm of the same name":     realm,
		"namespace and key run across": key("PostgreSQL", "team-a-orders", "o"),
	} {
		if other == base {
			t.Errorf("%s has the same digest", name)
		}
	}
	for _, spelling := range []string{"postgresql", "postgres", "pgx", "POSTGRESQL"} {
		if key(spelling, "team-a", "orders") != base {
			t.Errorf("%s is another database", spelling)
		}
	}
	if key("mariadb", "a", "k") != key("MySQL", "a", "k") {
		t.Error("mariadb is another database than MySQL")
	}
}

func TestADigestRefusesNamesThatCannotBe(t *testing.T) {
	for name, f := range map[string]func() (string, error){
		"an unknown engine":       func() (string, error) { return KeyDigest("Oracle", "team-a", "k") },
		"an upper-case namespace": func() (string, error) { return KeyDigest("MySQL", "Team", "k") },
		"a namespace of 64 bytes": func() (string, error) { return KeyDigest("MySQL", strings.Repeat("n", 64), "k") },
		"an empty key":            func() (string, error) { return KeyDigest("MySQL", "a", "") },
		"a key of 254 bytes":      func() (string, error) { return KeyDigest("MySQL", "a", strings.Repeat("k", 254)) },
		"a key that ends in a dot": func() (string, error) {
			return KeyDigest("MySQL", "a", "k.")
		},
		"a realm with a slash": func() (string, error) { return NameDigest("MySQL", "a/b") },
	} {
		if digest, err := f(); err == nil {
			t.Errorf("%s gives %s", name, digest)
		}
	}
	if _, err := KeyDigest("MySQL", strings.Repeat("n", 63), strings.Repeat("k", 253)); err != nil {
		t.Errorf("the longest names are refused: %v", err)
	}
}

func TestNamesAreValidAndTellDigestsApart(t *testing.T) {
	digest, err := KeyDigest("MySQL", "a", "k")
	if err != nil {
		t.Fatal(err)
	}
	name, err := LeaseName(digest)
	if err != nil || !strings.HasPrefix(name, "ptah-t-") || len(name) > 63 || name != strings.ToLower(name) {
		t.Errorf("name %q, %v", name, err)
	}
	for _, bad := range []string{"", "sha256:", "sha256:zz", strings.TrimPrefix(digest, "sha256:"), digest + "00"} {
		if _, err := LeaseName(bad); err == nil {
			t.Errorf("%q names a Lease", bad)
		}
	}
	if Holder("a") == Holder("b") || !strings.HasPrefix(Holder("a"), "ptah-h-") {
		t.Error("holders")
	}
}

// court is a coordination namespace with several processes that want its Leases.
type court struct {
	t        *testing.T
	base     client.WithWatch
	clock    *testclock.FakeClock
	digest   string
	requests int
	answer   func(string) error
}

func newCourt(t *testing.T) *court {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := coordinationv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	digest, err := KeyDigest("PostgreSQL", "a", "k")
	if err != nil {
		t.Fatal(err)
	}
	return &court{t: t, base: fake.NewClientBuilder().WithScheme(scheme).Build(), clock: testclock.NewFakeClock(time.Unix(1_800_000_000, 0)), digest: digest}
}

func (c *court) process(seed int64) *Leases {
	count := func(request string, do func() error) error {
		c.requests++
		if c.answer != nil {
			if err := c.answer(request); err != nil {
				return err
			}
		}
		return do()
	}
	counted := interceptor.NewClient(c.base, interceptor.Funcs{
		Get: func(ctx context.Context, i client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			return count("get", func() error { return i.Get(ctx, key, o, options...) })
		},
		Create: func(ctx context.Context, i client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return count("create", func() error { return i.Create(ctx, o, options...) })
		},
		Update: func(ctx context.Context, i client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return count("update", func() error { return i.Update(ctx, o, options...) })
		},
	})
	return &Leases{Client: counted, Namespace: "coordination", Clock: c.clock, Random: rand.New(rand.NewSource(seed))}
}

func (c *court) acquire(l *Leases, holder, expected string) Grant {
	c.t.Helper()
	grant, err := l.Acquire(context.Background(), Request{Digest: c.digest, Holder: holder, ExpectedEpoch: expected, Duration: time.Minute})
	if err != nil {
		c.t.Fatal(err)
	}
	return grant
}

func (c *court) release(l *Leases, holder, epoch string) {
	c.t.Helper()
	if err := l.Release(context.Background(), c.digest, holder, epoch); err != nil {
		c.t.Fatal(err)
	}
}

func (c *court) stored() *coordinationv1.Lease {
	c.t.Helper()
	name, err := LeaseName(c.digest)
	if err != nil {
		c.t.Fatal(err)
	}
	lease := &coordinationv1.Lease{}
	if err := c.base.Get(context.Background(), client.ObjectKey{Namespace: "coordination", Name: name}, lease); err != nil {
		c.t.Fatal(err)
	}
	return lease
}

func TestALeaseIsTakenRenewedAndGivenBack(t *testing.T) {
	c := newCourt(t)
	l := c.process(1)
	first := c.acquire(l, "a", "")
	if !first.Held || !strings.HasPrefix(first.Epoch, "v1-") || len(first.Epoch) != 35 || first.ContinuityLost || c.requests != 2 {
		t.Errorf("grant %+v after %d requests", first, c.requests)
	}
	c.clock.Step(30 * time.Second)
	c.requests = 0
	if again := c.acquire(l, "a", first.Epoch); again.Epoch != first.Epoch || again.ContinuityLost || c.requests != 1 {
		t.Errorf("a renewal gives %+v after %d requests", again, c.requests)
	}
	if got := c.stored(); got.Spec.RenewTime.Time != c.clock.Now() || got.Labels[LabelCoordination] != DatabaseTarget {
		t.Errorf("stored %+v", got)
	}
	c.requests = 0
	c.release(l, "a", first.Epoch)
	if got := c.stored(); got.Spec.HolderIdentity != nil || got.Annotations[ptahv1.AnnotationLeaseEpoch] != "" || c.requests != 1 {
		t.Errorf("released as %+v after %d requests", got.Spec, c.requests)
	}
	second := c.acquire(l, "a", "")
	if second.Epoch == first.Epoch {
		t.Error("a Lease taken again has the old epoch")
	}
	if lost := c.acquire(l, "a", first.Epoch); !lost.Held || !lost.ContinuityLost || lost.Epoch != second.Epoch {
		t.Errorf("an old epoch gives %+v", lost)
	}
}

func TestAForeignLeaseIsTakenOnlyAfterItWasWatchedForItsWholeDuration(t *testing.T) {
	c := newCourt(t)
	first, second := c.process(1), c.process(2)
	held := c.acquire(first, "a", "")
	// The record looks ancient; what counts is how long this process has watched it.
	c.clock.Step(time.Hour)
	if got := c.acquire(second, "b", ""); got.Held || got.RetryAfter <= 0 || got.RetryAfter > 5*time.Second {
		t.Errorf("a Lease seen for the first time gives %+v", got)
	}
	c.clock.Step(time.Minute - time.Second)
	if got := c.acquire(second, "b", ""); got.Held || got.RetryAfter != time.Second {
		t.Errorf("one second too early gives %+v", got)
	}
	// A renewal starts the watch anew.
	c.acquire(first, "a", held.Epoch)
	c.clock.Step(2 * time.Second)
	if got := c.acquire(second, "b", ""); got.Held {
		t.Error("a renewed Lease was taken over")
	}
	c.clock.Step(time.Minute - time.Second)
	if got := c.acquire(second, "b", ""); got.Held {
		t.Error("a renewed Lease was taken over one second too early")
	}
	c.clock.Step(time.Second)
	taken := c.acquire(second, "b", "")
	if !taken.Held || taken.Epoch == held.Epoch {
		t.Fatalf("after the whole duration: %+v", taken)
	}
	if got := c.acquire(first, "a", held.Epoch); got.Held {
		t.Error("two processes hold one Lease")
	}
	// The one that lost it cannot give away what is another's.
	c.release(first, "a", held.Epoch)
	if ptr.Deref(c.stored().Spec.HolderIdentity, "") != "b" {
		t.Error("a foreign Lease was released")
	}
}

func TestAReleaseNeedsHolderAndEpoch(t *testing.T) {
	for name, test := range map[string]struct {
		holder, epoch string
		freed         bool
	}{
		"another holder": {"b", "same", false},
		"another epoch":  {"a", "v1-00000000000000000000000000000000", false},
		"no holder":      {"", "same", false},
		"both match":     {"a", "same", true},
		"any epoch":      {"a", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t)
			l := c.process(1)
			grant := c.acquire(l, "a", "")
			epoch := test.epoch
			if epoch == "same" {
				epoch = grant.Epoch
			}
			c.release(c.process(2), test.holder, epoch)
			if freed := c.stored().Spec.HolderIdentity == nil; freed != test.freed {
				t.Errorf("freed: %v", freed)
			}
		})
	}
	c := newCourt(t)
	c.release(c.process(1), "a", "") // there is no Lease: success
}

func TestADeletedLeaseIsALossOfContinuity(t *testing.T) {
	c := newCourt(t)
	l := c.process(1)
	grant := c.acquire(l, "a", "")
	if err := c.base.Delete(context.Background(), c.stored()); err != nil {
		t.Fatal(err)
	}
	if got := c.acquire(l, "a", grant.Epoch); !got.Held || !got.ContinuityLost || got.Epoch == grant.Epoch {
		t.Errorf("grant %+v", got)
	}
}

func TestALeaseThatNobodyCanTimeIsLeftAlone(t *testing.T) {
	c := newCourt(t)
	c.acquire(c.process(1), "a", "")
	lease := c.stored()
	lease.Spec.LeaseDurationSeconds = nil
	if err := c.base.Update(context.Background(), lease); err != nil {
		t.Fatal(err)
	}
	l := c.process(2)
	c.clock.Step(time.Hour)
	if _, err := l.Acquire(context.Background(), Request{Digest: c.digest, Holder: "b", Duration: time.Minute}); !errors.Is(err, ErrMalformed) {
		t.Errorf("error %v", err)
	}
}

func TestARequestOutOfBoundsIsRefused(t *testing.T) {
	c := newCourt(t)
	for _, request := range []Request{
		{Digest: c.digest, Holder: "a", Duration: MinDuration - 1},
		{Digest: c.digest, Holder: "a", Duration: MaxDuration + 1},
		{Digest: c.digest, Duration: time.Minute},
		{Digest: "x", Holder: "a", Duration: time.Minute},
	} {
		if grant, err := c.process(1).Acquire(context.Background(), request); err == nil {
			t.Errorf("%+v gives %+v", request, grant)
		}
	}
	for _, duration := range []time.Duration{MinDuration, MaxDuration} {
		if _, err := c.process(1).Acquire(context.Background(), Request{Digest: c.digest, Holder: "a", Duration: duration}); err != nil {
			t.Errorf("%s: %v", duration, err)
		}
	}
}

func TestAFailedWriteIsLookedAtAgain(t *testing.T) {
	c := newCourt(t)
	l := c.process(1)
	grant := c.acquire(l, "a", "")
	c.answer = func(request string) error {
		if request == "update" {
			return errors.New("connection reset")
		}
		return nil
	}
	if _, err := l.Acquire(context.Background(), Request{Digest: c.digest, Holder: "a", ExpectedEpoch: grant.Epoch, Duration: time.Minute}); err == nil {
		t.Fatal("a broken connection is no error")
	}
	if l.Vouch(c.digest, "a", grant.Epoch) {
		t.Error("it vouches for a Lease it does not know")
	}
	c.answer, c.requests = nil, 0
	if got := c.acquire(l, "a", grant.Epoch); got.Epoch != grant.Epoch || c.requests != 2 {
		t.Errorf("grant %+v after %d requests", got, c.requests)
	}
}

func TestAProcessVouchesOnlyForWhatItWroteItselfNotLongAgo(t *testing.T) {
	c := newCourt(t)
	l := c.process(1)
	grant := c.acquire(l, "a", "")
	c.clock.Step(30*time.Second - 1)
	if !l.Vouch(c.digest, "a", grant.Epoch) {
		t.Error("it does not vouch within half of the duration")
	}
	for name, vouched := range map[string]bool{
		"for another holder": l.Vouch(c.digest, "b", grant.Epoch),
		"for another epoch":  l.Vouch(c.digest, "a", "v1-x"),
		"for no epoch":       l.Vouch(c.digest, "a", ""),
		"as another process": c.process(2).Vouch(c.digest, "a", grant.Epoch),
		"for no digest":      l.Vouch("x", "a", grant.Epoch),
	} {
		if vouched {
			t.Errorf("it vouches %s", name)
		}
	}
	c.clock.Step(1)
	if l.Vouch(c.digest, "a", grant.Epoch) {
		t.Error("it vouches after half of the duration")
	}
	grant = c.acquire(l, "a", grant.Epoch)
	c.release(l, "a", grant.Epoch)
	if l.Vouch(c.digest, "a", grant.Epoch) {
		t.Error("it vouches for what it gave back")
	}
}

// TestNeverTwoHolders lets three processes act at random and checks that a hold which the API server confirmed is not
// given to another holder before it was released or its whole duration passed.
func TestNeverTwoHolders(t *testing.T) {
	for seed := range int64(200) {
		c := newCourt(t)
		random := rand.New(rand.NewSource(seed))
		processes := []*Leases{c.process(seed), c.process(seed + 1000), c.process(seed + 2000)}
		until := map[int]time.Time{}
		epochs := map[int]string{}
		for range 60 {
			who := random.Intn(len(processes))
			name := string(rune('a' + who))
			switch random.Intn(4) {
			case 0:
				c.clock.Step(time.Duration(random.Intn(40)) * time.Second)
			case 1:
				c.release(processes[who], name, epochs[who])
				delete(until, who)
			case 2:
				processes[who] = c.process(random.Int63()) // a restart
			default:
				grant := c.acquire(processes[who], name, "")
				if !grant.Held {
					continue
				}
				for other, end := range until {
					if other != who && c.clock.Now().Before(end) {
						t.Fatalf("seed %d: %s got the Lease that %c holds until %s", seed, name, 'a'+other, end)
					}
				}
				until[who], epochs[who] = c.clock.Now().Add(time.Minute), grant.Epoch
			}
		}
	}
}
