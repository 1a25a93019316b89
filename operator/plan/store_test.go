package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	ptahv1 "ptah.run/ptah/operator/api/v1alpha1"
)

type shelf struct {
	t        *testing.T
	client   client.WithWatch
	requests int
	fail     func(request int) bool
	uid      int
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := ptahv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := &shelf{t: t}
	count := func(do func() error) error {
		s.requests++
		if s.fail != nil && s.fail(s.requests) {
			return errors.New("connection reset")
		}
		return do()
	}
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&ptahv1.PtahSchemaPlan{}).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			return count(func() error { return c.Get(ctx, key, o, options...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return count(func() error {
				s.uid++
				o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uid)))
				return c.Create(ctx, o, options...)
			})
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			return count(func() error { return c.SubResource(sub).Update(ctx, o, options...) })
		},
	}).Build()
	return s
}

var owner = &ptahv1.PtahSchema{ObjectMeta: metav1.ObjectMeta{Name: "orders", Namespace: "team-a", UID: "owner"}}

func (s *shelf) publish(data []byte) (*ptahv1.PtahSchemaPlan, error) {
	return Store{Writer: s.client, Reader: s.client}.Publish(context.Background(), owner, goodSpec(), data)
}

func (s *shelf) read(p *ptahv1.PtahSchemaPlan) ([]byte, error) {
	_, data, err := Read(context.Background(), s.client, "team-a", ptahv1.ImmutableObjectReference{Name: p.Name, UID: string(p.UID)})
	return data, err
}

func TestAPublishedPlanReadsBackByteForByte(t *testing.T) {
	for _, size := range []int{1, ptahv1.MaxChunkBytes, ptahv1.MaxChunkBytes + 1, 3*ptahv1.MaxChunkBytes - 1} {
		s := newShelf(t)
		data := bytes.Repeat([]byte("é"), size)[:size]
		p, err := s.publish(data)
		if err != nil {
			t.Fatal(err)
		}
		if want := 2 + len(p.Spec.Chunks); s.requests != want {
			t.Errorf("publishing %d bytes takes %d requests instead of %d", size, s.requests, want)
		}
		if p.Name != Name(string(p.Spec.Fingerprint)) || !metav1.IsControlledBy(p, owner) || p.Spec.SchemaRef.UID != "owner" {
			t.Errorf("plan %+v", p.ObjectMeta)
		}
		got, err := s.read(p)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes come back as %d: %v", size, len(got), err)
		}
	}
}

func TestPublishingAgainAdoptsWhatIsStored(t *testing.T) {
	s := newShelf(t)
	data := bytes.Repeat([]byte("x"), ptahv1.MaxChunkBytes+5)
	first, err := s.publish(data)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.publish(data)
	if err != nil || first.UID != second.UID {
		t.Fatalf("another plan %v, %v", second, err)
	}
	// An interrupted publication is completed, wherever it stopped.
	for stop := 1; stop <= 4; stop++ {
		s := newShelf(t)
		s.fail = func(request int) bool { return request == stop }
		if _, err := s.publish(data); err == nil {
			t.Fatalf("the fault at request %d did not bite", stop)
		}
		s.fail = nil
		p, err := s.publish(data)
		if err != nil {
			t.Fatalf("after a fault at request %d: %v", stop, err)
		}
		if got, err := s.read(p); err != nil || !bytes.Equal(got, data) {
			t.Errorf("after a fault at request %d: %v", stop, err)
		}
	}
}

func TestAPlanThatIsNotIntactIsNeverRead(t *testing.T) {
	data := bytes.Repeat([]byte("x"), ptahv1.MaxChunkBytes+5)
	for name, spoil := range map[string]func(*shelf, *ptahv1.PtahSchemaPlan, *ptahv1.PtahSchemaPlanChunk){
		"a byte of a chunk": func(s *shelf, _ *ptahv1.PtahSchemaPlan, c *ptahv1.PtahSchemaPlanChunk) {
			c.Spec.Data[0] = 'y'
			s.update(c)
		},
		"a chunk is shorter": func(s *shelf, _ *ptahv1.PtahSchemaPlan, c *ptahv1.PtahSchemaPlanChunk) {
			c.Spec.Data = c.Spec.Data[1:]
			s.update(c)
		},
		"a chunk of another UID": func(s *shelf, _ *ptahv1.PtahSchemaPlan, c *ptahv1.PtahSchemaPlanChunk) {
			s.replace(c)
		},
		"a chunk of another owner": func(s *shelf, _ *ptahv1.PtahSchemaPlan, c *ptahv1.PtahSchemaPlanChunk) {
			c.OwnerReferences[0].UID = "another"
			s.update(c)
		},
		"a plan of another UID": func(s *shelf, p *ptahv1.PtahSchemaPlan, _ *ptahv1.PtahSchemaPlanChunk) { p.UID = "another" },
		"another statement count": func(s *shelf, p *ptahv1.PtahSchemaPlan, _ *ptahv1.PtahSchemaPlanChunk) {
			s.edit(p, func(q *ptahv1.PtahSchemaPlan) { q.Spec.StatementCount++ })
		},
		"another artifact": func(s *shelf, p *ptahv1.PtahSchemaPlan, _ *ptahv1.PtahSchemaPlanChunk) {
			s.edit(p, func(q *ptahv1.PtahSchemaPlan) { q.Spec.ArtifactDigest = digestOf("other") })
		},
		"another size": func(s *shelf, p *ptahv1.PtahSchemaPlan, _ *ptahv1.PtahSchemaPlanChunk) {
			s.edit(p, func(q *ptahv1.PtahSchemaPlan) { q.Spec.Size++ })
		},
		"chunks in another order": func(s *shelf, p *ptahv1.PtahSchemaPlan, _ *ptahv1.PtahSchemaPlanChunk) {
			s.edit(p, func(q *ptahv1.PtahSchemaPlan) {
				q.Spec.Chunks[0], q.Spec.Chunks[1] = q.Spec.Chunks[1], q.Spec.Chunks[0]
			})
		},
		"a chunk that is not named": func(s *shelf, p *ptahv1.PtahSchemaPlan, _ *ptahv1.PtahSchemaPlanChunk) {
			s.edit(p, func(q *ptahv1.PtahSchemaPlan) { q.Spec.Chunks = q.Spec.Chunks[:1] })
		},
		"not marked as stored": func(s *shelf, p *ptahv1.PtahSchemaPlan, _ *ptahv1.PtahSchemaPlanChunk) {
			stored := s.stored(p)
			stored.Status.Conditions = nil
			if err := s.client.Status().Update(context.Background(), stored); err != nil {
				s.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			p, err := s.publish(data)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.read(p); err != nil {
				t.Fatalf("the control cannot be read: %v", err)
			}
			chunk := &ptahv1.PtahSchemaPlanChunk{}
			if err := s.client.Get(context.Background(), client.ObjectKey{Namespace: "team-a", Name: p.Spec.Chunks[1].Name}, chunk); err != nil {
				t.Fatal(err)
			}
			spoil(s, p, chunk)
			if got, err := s.read(p); !errors.Is(err, ErrAltered) {
				t.Errorf("it reads as %d bytes: %v", len(got), err)
			}
		})
	}
}

func TestAMissingChunkIsNotFound(t *testing.T) {
	s := newShelf(t)
	p, err := s.publish([]byte("plan"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.client.Delete(context.Background(), &ptahv1.PtahSchemaPlanChunk{ObjectMeta: metav1.ObjectMeta{Name: p.Spec.Chunks[0].Name, Namespace: "team-a"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read(p); !apierrors.IsNotFound(err) {
		t.Errorf("error %v", err)
	}
}

func TestAnotherObjectUnderThePlansNameIsRefused(t *testing.T) {
	for name, change := range map[string]func(*ptahv1.PtahSchemaPlan){
		"another owner":   func(p *ptahv1.PtahSchemaPlan) { p.OwnerReferences[0].UID = "another" },
		"another content": func(p *ptahv1.PtahSchemaPlan) { p.Spec.Destructive = true },
	} {
		s := newShelf(t)
		p, err := s.publish([]byte("plan"))
		if err != nil {
			t.Fatal(err)
		}
		s.edit(p, change)
		if _, err := s.publish([]byte("plan")); !errors.Is(err, ErrAltered) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := newShelf(t)
	p, err := s.publish([]byte("plan"))
	if err != nil {
		t.Fatal(err)
	}
	chunk := &ptahv1.PtahSchemaPlanChunk{}
	if err := s.client.Get(context.Background(), client.ObjectKey{Namespace: "team-a", Name: p.Spec.Chunks[0].Name}, chunk); err != nil {
		t.Fatal(err)
	}
	chunk.Spec.Data = []byte("evil")
	s.update(chunk)
	if _, err := s.publish([]byte("plan")); !errors.Is(err, ErrAltered) {
		t.Errorf("another chunk under the name: %v", err)
	}
}

func (s *shelf) stored(p *ptahv1.PtahSchemaPlan) *ptahv1.PtahSchemaPlan {
	s.t.Helper()
	stored := &ptahv1.PtahSchemaPlan{}
	if err := s.client.Get(context.Background(), client.ObjectKeyFromObject(p), stored); err != nil {
		s.t.Fatal(err)
	}
	return stored
}

func (s *shelf) edit(p *ptahv1.PtahSchemaPlan, change func(*ptahv1.PtahSchemaPlan)) {
	s.t.Helper()
	stored := s.stored(p)
	change(stored)
	s.update(stored)
}

func (s *shelf) update(object client.Object) {
	s.t.Helper()
	if err := s.client.Update(context.Background(), object); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shelf) replace(chunk *ptahv1.PtahSchemaPlanChunk) {
	s.t.Helper()
	if err := s.client.Delete(context.Background(), chunk); err != nil {
		s.t.Fatal(err)
	}
	again := chunk.DeepCopy()
	again.ResourceVersion = ""
	if err := s.client.Create(context.Background(), again); err != nil {
		s.t.Fatal(err)
	}
}
