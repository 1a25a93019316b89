package planview

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/api/v1alpha1"
	"ptah.run/ptah/operator/plan"
	"ptah.run/ptah/operator/plan/report"
)

// memoryBound is how much a command may hold of the largest plan at any time, in bytes: some chunks in their several
// forms, and no more of a larger plan.
const memoryBound = 4 << 20

// largest is a plan of v1alpha1.MaxPlanBytes in as many chunks as there may be.
func largest(t testing.TB) *world {
	t.Helper()
	document := exampleDocument()
	document.Statements = nil
	for i := range 7800 {
		document.Statements = append(document.Statements, report.Statement{
			SQL: fmt.Sprintf("INSERT INTO public.t VALUES (%d, '%s')", i, strings.Repeat("x", 900)), Kind: "INSERT",
			Severity: report.SeveritySafe, LockClass: "none", RewriteRisk: report.RewriteNone,
		})
	}
	document.Summarise()
	data, err := report.EncodePlan(document)
	if err != nil {
		t.Fatal(err)
	}
	document.Statements[0].SQL += strings.Repeat("y", v1alpha1.MaxPlanBytes-len(data))
	w := newWorld(t, document, v1alpha1.MaxChunkBytes)
	if len(w.data) != v1alpha1.MaxPlanBytes || len(w.chunks) != v1alpha1.MaxPlanChunks {
		t.Fatalf("the plan has %d bytes in %d chunks", len(w.data), len(w.chunks))
	}
	return w
}

// server answers from the world with copies, as an API server does, and measures the heap when it is asked.
type server struct {
	client.Reader
	w *world
	m *meter
}

func (s *server) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.m.measure()
	switch into := into.(type) {
	case *v1alpha1.PtahSchema:
		s.w.schema.DeepCopyInto(into)
	case *v1alpha1.PtahSchemaPlan:
		s.w.plan.DeepCopyInto(into)
	case *v1alpha1.PtahSchemaPlanChunk:
		for _, chunk := range s.w.chunks {
			if chunk.Name == key.Name {
				chunk.DeepCopyInto(into)
			}
		}
	}
	return nil
}

// meter keeps the largest heap that it saw.
type meter struct {
	base, peak uint64
	writes     int
}

func live() uint64 {
	runtime.GC()
	stats := runtime.MemStats{}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func (m *meter) measure() { m.peak = max(m.peak, live()) }

// Write throws away, and measures now and then.
func (m *meter) Write(p []byte) (int, error) {
	if m.writes++; m.writes%200 == 1 {
		m.measure()
	}
	return len(p), nil
}

func (m *meter) used() uint64 { return m.peak - min(m.base, m.peak) }

func TestTheLargestPlanIsNeverInMemoryAsAWhole(t *testing.T) {
	w := largest(t)
	for form, write := range map[string]func(*View, io.Writer) error{
		"text": (*View).Text, "sql": (*View).SQL, "json": (*View).JSON, "approval": (*View).Approval,
	} {
		t.Run(form, func(t *testing.T) {
			m := &meter{base: live()}
			view, err := Fetch(t.Context(), &server{w: w, m: m}, "shop", "orders", Current)
			if err != nil {
				t.Fatal(err)
			}
			if err := write(view, m); err != nil {
				t.Fatal(err)
			}
			m.measure()
			runtime.KeepAlive(view)
			if err := view.Close(); err != nil {
				t.Fatal(err)
			}
			t.Logf("a plan of %d bytes: at most %d bytes at a time", len(w.data), m.used())
			if m.used() > memoryBound {
				t.Errorf("it holds %d bytes at a time", m.used())
			}
		})
	}
	t.Run("the control: a plan that is read whole is seen", func(t *testing.T) {
		m := &meter{base: live()}
		_, data, err := plan.Read(t.Context(), &server{w: w, m: m}, "shop", w.schema.Status.Plan.ImmutableObjectReference)
		if err != nil {
			t.Fatal(err)
		}
		document, err := report.DecodePlan(data)
		if err != nil {
			t.Fatal(err)
		}
		m.measure()
		runtime.KeepAlive(document)
		if m.used() < v1alpha1.MaxPlanBytes {
			t.Errorf("only %d bytes were seen", m.used())
		}
	})
}

func TestTheLargestPlanIsPrintedByteForByte(t *testing.T) {
	w := largest(t)
	view := fetch(t, w, Current)
	var page bytes.Buffer
	if err := view.JSON(&page); err != nil || !bytes.Equal(page.Bytes(), w.data) {
		t.Errorf("%d bytes of %d are printed (%v)", page.Len(), len(w.data), err)
	}
}

func TestNothingOfAPlanIsLeftOnTheDisk(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	s, err := newSpool(v1alpha1.MaxChunkBytes + 1)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "INSERT INTO t VALUES ('secret')"
	if _, err := io.WriteString(s, secret); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(names) != 0 {
		t.Errorf("the folder holds %v (%v)", names, err)
	}
	stored := make([]byte, len(secret))
	if _, err := s.file.ReadAt(stored, 0); err != nil || bytes.Contains(stored, []byte("INSERT")) {
		t.Errorf("the disk holds %q (%v)", stored, err)
	}
	for range 2 {
		if got, err := io.ReadAll(s.Open()); err != nil || string(got) != secret {
			t.Errorf("it reads back as %q (%v)", got, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := os.Remove(folder); err != nil {
		t.Errorf("something is left: %v", err)
	}
	if _, err := newSpool(v1alpha1.MaxChunkBytes + 1); err == nil || !strings.Contains(err.Error(), "set TMPDIR to a folder") {
		t.Errorf("a folder that does not exist is reported as %v", err)
	}
}

func BenchmarkFetchAndPrint(b *testing.B) {
	w := largest(b)
	b.ReportAllocs()
	b.SetBytes(v1alpha1.MaxPlanBytes)
	for b.Loop() {
		view, err := Fetch(b.Context(), w.reader(b), "shop", "orders", Current)
		if err != nil {
			b.Fatal(err)
		}
		if err := view.Text(io.Discard); err != nil {
			b.Fatal(err)
		}
		_ = view.Close()
	}
}
