package schema

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"ptah.run/ptah/operator/testserver"
)

var server = &testserver.Server{CRDs: "../../chart/ptah-operator/crds"}

func TestMain(m *testing.M) {
	passed := m.Run() == 0 // the test program exits with what it returned
	if err := server.Stop(); err != nil {
		panic("stop the API server: " + err.Error())
	}
	if missing := unspoken(); passed && len(missing) > 0 {
		panic("documented, and said by no test:\n\t" + strings.Join(missing, "\n\t"))
	}
}

var worlds atomic.Int32

// newServerWorld is a world on a real API server, in a namespace of its own.
func newServerWorld(t *testing.T) *world {
	t.Helper()
	config := server.Config(t)
	scheme := newScheme(t)
	w := emptyWorld(t, scheme)
	w.serverSide = true
	base, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	w.base = base
	number := worlds.Add(1)
	w.namespace = fmt.Sprintf("team-%d", number)
	w.coordination = fmt.Sprintf("coordination-%d", number)
	for _, name := range []string{w.namespace, w.coordination} {
		if err := base.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	w.create(newPolicy())
	return w
}

// everyWorld runs a test on the fake API server, and on a real one where there is one.
func everyWorld(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	t.Run("fake API server", func(t *testing.T) { test(t, newWorld(t)) })
	t.Run("real API server", func(t *testing.T) { test(t, newServerWorld(t)) })
}

// sameRequests compares requests as multisets of lines, in order.
func sameRequests(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("requests:\n got %d:\n\t%s\nwant %d:\n\t%s", len(got), strings.Join(got, "\n\t"), len(want), strings.Join(want, "\n\t"))
	}
}
