package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"ptah.run/ptah/qualification/lab/catalog"
	"ptah.run/ptah/qualification/lab/layer"
	"ptah.run/ptah/qualification/lab/programs"
)

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// recipes are the roles that can be built.
var recipes = map[catalog.Role]recipe{
	catalog.Node: {
		version: 1,
		parts:   []string{"kubernetes", "etcd", "containerd", "runc", "crictl", "cni", "coredns", "files"},
		layers: []layerRecipe{
			{name: "files", build: nodeFiles},
			{name: "images", own: []string{"pause"}, build: nodeImages},
		},
		config: fixed(v1.Config{
			Env:        []string{"container=docker", searchPath},
			StopSignal: "SIGRTMIN+3", // systemd ends on it
			Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
		}),
	},
	catalog.LoadBalancer: {
		version: 1,
		layers:  []layerRecipe{{name: "envoy", own: []string{"forwarder"}, build: loadBalancerFiles}},
		config:  fixed(v1.Config{Env: []string{searchPath}}),
	},
	catalog.Registry: {
		version: 1,
		parts:   []string{"registry"},
		layers:  []layerRecipe{{name: "registry", build: registryFiles}},
		config: fixed(v1.Config{
			// Without the exporter setting the registry sends traces to a collector that is not there.
			Env:          []string{searchPath, "OTEL_TRACES_EXPORTER=none"},
			User:         fmt.Sprintf("%d:%d", UnprivilegedID, UnprivilegedID),
			Entrypoint:   []string{"/usr/local/bin/registry"},
			Cmd:          []string{"serve", "/etc/distribution/config.yml"},
			ExposedPorts: map[string]struct{}{"5000/tcp": {}},
		}),
	},
	catalog.PostgreSQL: {
		version: 2,
		layers:  []layerRecipe{{name: "server", own: []string{"postgresqlstart"}, build: postgresqlFiles}},
		config: func(entry catalog.Image) v1.Config {
			config := databaseConfig(entry)
			config.Entrypoint = []string{"/usr/local/bin/postgresql-start"}
			config.StopSignal = "SIGINT" // fast shutdown: it does not wait for clients
			config.ExposedPorts = map[string]struct{}{"5432/tcp": {}}
			return config
		},
	},
	catalog.MySQL: {
		version: 1,
		layers:  []layerRecipe{{name: "server", own: []string{"mysqlstart"}, build: mysqlFiles}},
		config: fixed(v1.Config{
			Env:          []string{searchPath, "LANG=C.UTF-8"},
			User:         fmt.Sprintf("%d:%d", UnprivilegedID, UnprivilegedID),
			Entrypoint:   []string{"/usr/local/bin/mysql-start"},
			ExposedPorts: map[string]struct{}{"3306/tcp": {}},
		}),
	},
	catalog.ExecutorBase: {
		version: 2,
		layers:  []layerRecipe{{name: "base", build: executorBaseFiles}, {name: "mysql", build: mysqlServer, beside: true}},
		config:  databaseConfig,
	},
}

func fixed(config v1.Config) func(catalog.Image) v1.Config {
	return func(catalog.Image) v1.Config { return config }
}

// databaseConfig puts the programs of the PostgreSQL version into the search path: Debian's own entries in
// /usr/bin are perl programs, which the image lacks.
func databaseConfig(entry catalog.Image) v1.Config {
	return v1.Config{
		Env:  []string{"PATH=/usr/lib/postgresql/" + entry.Version + "/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin", "LANG=C.UTF-8"},
		User: fmt.Sprintf("%d:%d", UnprivilegedID, UnprivilegedID),
	}
}

// ownDigest identifies the source of one of the lab's own programs.
func ownDigest(program string) (string, error) {
	files, err := programs.Source(program, "1.26")
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(files)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

func loadBalancerFiles(_ context.Context, w *layer.Writer, in inputs) error {
	return w.FromFile("usr/local/bin/envoy", in.own["forwarder"], 0o755, layer.Root)
}

// users writes the account files of an image that no package script has made.
func users(w *layer.Writer) error {
	passwd := fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\nptah:x:%[1]d:%[1]d:ptah:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n", UnprivilegedID)
	group := fmt.Sprintf("root:x:0:\nptah:x:%d:\nnogroup:x:65534:\n", UnprivilegedID)
	if err := w.Bytes("etc/passwd", []byte(passwd), 0o644, layer.Root); err != nil {
		return err
	}
	if err := w.Bytes("etc/group", []byte(group), 0o644, layer.Root); err != nil {
		return err
	}
	return w.Dir("tmp", 0o1777, layer.Root)
}

func registryFiles(_ context.Context, w *layer.Writer, in inputs) error {
	if err := users(w); err != nil {
		return err
	}
	if err := w.Dir("var/lib/registry", 0o1777, layer.Root); err != nil {
		return err
	}
	return w.FromFile("usr/local/bin/registry", filepath.Join(in.parts["registry"], "registry"), 0o755, layer.Root)
}

// packageList is the file in which a shipped file system says what it holds.
func packageList(w *layer.Writer, filesystem *layer.File) error {
	var text []byte
	for _, name := range filesystem.Meta.Packages {
		text = append(text, name+"\n"...)
	}
	return w.Bytes("usr/share/ptah/packages", text, 0o644, layer.Root)
}

func postgresqlFiles(ctx context.Context, w *layer.Writer, in inputs) error {
	if err := executorBaseFiles(ctx, w, in); err != nil {
		return err
	}
	owner := layer.Owner{UID: UnprivilegedID, GID: UnprivilegedID}
	for _, dir := range []string{"var/lib/postgresql", "var/log/postgresql"} {
		if err := w.Dir(dir, 0o755, owner); err != nil {
			return err
		}
	}
	return w.FromFile("usr/local/bin/postgresql-start", in.own["postgresqlstart"], 0o755, layer.Root)
}

func mysqlFiles(_ context.Context, w *layer.Writer, in inputs) error {
	if err := users(w); err != nil {
		return err
	}
	if err := packageList(w, in.filesystem); err != nil {
		return err
	}
	if err := w.Dir("var/lib/mysql", 0o755, layer.Owner{UID: UnprivilegedID, GID: UnprivilegedID}); err != nil {
		return err
	}
	return w.FromFile("usr/local/bin/mysql-start", in.own["mysqlstart"], 0o755, layer.Root)
}

func executorBaseFiles(ctx context.Context, w *layer.Writer, in inputs) error {
	if err := users(w); err != nil {
		return err
	}
	if err := packageList(w, in.filesystem); err != nil {
		return err
	}
	return dataDirectory(ctx, w, in)
}
