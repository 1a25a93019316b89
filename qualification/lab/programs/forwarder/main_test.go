package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

const clusters = `
resources:
- name: kube_apiservers
  load_assignment:
    endpoints:
    - lb_endpoints:
      - endpoint:
          address:
            socket_address:
              address: lab-control-plane
              port_value: 6443
      - endpoint:
          address:
            socket_address:
              address: 172.18.0.3
              port_value: 6444
`

func TestBackendsAreReadFromEnvoysClusterFile(t *testing.T) {
	cases := map[string]struct {
		file string
		want []string
	}{
		"two endpoints":       {clusters, []string{"lab-control-plane:6443", "172.18.0.3:6444"}},
		"no resources yet":    {"resources: []", []string{}},
		"an empty file":       {"", []string{}},
		"an address, no port": {"address: x\n", []string{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := backends([]byte(c.file)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestADeadBackendIsSkipped(t *testing.T) {
	alive := listen(t)
	go func() {
		for {
			connection, err := alive.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(connection, connection) // what is missing is missed by the client
			_ = connection.Close()
		}
	}()
	dead := listen(t)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	f := &forwarder{}
	list := []string{dead.Addr().String(), alive.Addr().String()}
	f.backends.Store(&list)
	front := listen(t)
	go func() { _ = f.serve(front) }() // until the test closes it
	for range 4 {
		client, err := net.Dial("tcp", front.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(client, "hello"); err != nil {
			t.Fatal(err)
		}
		if err := client.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(client)
		if err != nil || string(answer) != "hello" {
			t.Fatalf("got %q, %v", answer, err)
		}
		_ = client.Close()
	}
}

func TestAConnectionEndsWhereNoBackendIsKnown(t *testing.T) {
	f := &forwarder{}
	front := listen(t)
	go func() { _ = f.serve(front) }() // until the test closes it
	client, err := net.Dial("tcp", front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if answer, _ := io.ReadAll(client); len(answer) != 0 {
		t.Errorf("got %q, want nothing", answer)
	}
}

func TestTheLastListStaysWhereTheFileIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cds.yaml")
	if err := os.WriteFile(path, []byte(clusters), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &forwarder{}
	f.load(path)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f.load(path)
	if got := len(*f.backends.Load()); got != 2 {
		t.Errorf("got %d backends, want 2", got)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}
